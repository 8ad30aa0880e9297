/** A DNS server that answers A queries for names of a test, as the server of a Docker engine does for services. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

const typeA = 1
const noSuchName = 3

export async function startDns() {
  const names = new Map<string, readonly string[]>()
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => socket.send(answerTo(query, names), from.port, from.address))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    /** From now on, the addresses of a name; none means that the name does not exist. */
    set: (name: string, addresses: readonly string[]) => void names.set(name, addresses),
    async close() {
      await once(socket.close(), 'close')
    },
  }
}

/** Header: id, flags, and four counts. Then the question as it came, and an answer for each address. */
function answerTo(query: Buffer, names: ReadonlyMap<string, readonly string[]>): Buffer {
  const { name, type, end } = questionOf(query)
  const known = names.get(name) ?? []
  const addresses = type === typeA ? known : []
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | (known.length === 0 ? noSuchName : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([header, query.subarray(12, end), ...addresses.map(addressRecord)])
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** The name is a pointer to the question's; class IN, a TTL of one second, four bytes. */
function addressRecord(address: string): Buffer {
  const record = Buffer.from([0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4])
  return Buffer.concat([record, Buffer.from(address.split('.').map(Number))])
}
