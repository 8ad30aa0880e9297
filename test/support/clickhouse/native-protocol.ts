/**
 * ClickHouse's native protocol in the version of 2016, which servers still support: enough to run one query per connection, as
 * a user.
 *
 * Source: ClickHouse, `src/Core/Protocol.h` (packets) and `ProtocolDefines.h` (what a revision adds).
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { type Place, readValue, readVarUint, skip } from './row-binary.ts'

interface NativeAddress {
  port: number
  user: string
  password: string
}

// Below 54032 a query has no client description, and the server sends few optional fields.
const revision = 54_000
const clientPackets = { hello: 0, query: 1, data: 2 } as const
const serverPackets = { hello: 0, data: 1, exception: 2, progress: 3, endOfStream: 5, profile: 6 } as const
const stageComplete = 2

/** The values of the first column. Rejects with a `NativeError` if the server refuses. Text and numbers only. */
export async function askNative(address: NativeAddress, query: string): Promise<string[]> {
  const socket = connect({ host: '127.0.0.1', port: address.port })
  try {
    socket.write(nativeHello(address))
    let received = Buffer.alloc(0)
    let isAsked = false
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer])
      const { isGreeted, values } = answerIn(received)
      if (isGreeted && !isAsked) socket.write(nativeQuery(query))
      isAsked = isGreeted
      if (values) return values
    }
    throw new Error('the server closed the connection')
  } finally {
    socket.destroy()
  }
}

/** Sends a query, and reads nothing of its result. The connection lasts as long as the server. */
export async function askUnread(address: NativeAddress, query: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port: address.port })
  socket.write(nativeHello(address))
  await once(socket, 'readable')
  socket.on('error', () => {}).write(nativeQuery(query))
}

/** Whether the server has said hello, and the values of an answer that is whole. Throws the exception that has arrived. */
function answerIn(received: Buffer): { isGreeted: boolean; values?: string[] } {
  const at = { offset: 0 }
  const numbers = (count: number) => Array.from({ length: count }, () => readVarUint(received, at))
  const text = () => String(readValue(received, at, 'String'))
  const values: string[] = []
  let isGreeted = false
  try {
    for (;;) {
      const [packet] = numbers(1)
      switch (packet) {
        case serverPackets.hello:
          text()
          numbers(3)
          isGreeted = true
          break
        case serverPackets.data:
          values.push(...firstColumn(received, at))
          break
        case serverPackets.exception: {
          const code = received.readInt32LE(skip(received, at, 4) - 4)
          text()
          throw Object.assign(new Error(text()), { name: 'NativeError', code })
        }
        case serverPackets.progress:
          numbers(3)
          break
        case serverPackets.profile:
          numbers(3)
          skip(received, at, 1)
          numbers(1)
          skip(received, at, 1)
          break
        case serverPackets.endOfStream:
          return { isGreeted, values }
        default:
          throw new Error(`packet ${packet} came, which is not known`)
      }
    }
  } catch (error) {
    // The bytes end within a packet, or before the next one.
    if (error instanceof RangeError) return { isGreeted }
    throw error
  }
}

/** The first column of a block. */
function firstColumn(received: Buffer, at: Place): string[] {
  readValue(received, at, 'String')
  // The block's header: fields by their numbers, up to 0.
  for (let field = readVarUint(received, at); field !== 0; field = readVarUint(received, at))
    skip(received, at, field === 1 ? 1 : 4)
  const columns = readVarUint(received, at)
  const rows = readVarUint(received, at)
  const decoded = Array.from({ length: columns }, () => {
    readValue(received, at, 'String')
    const type = String(readValue(received, at, 'String'))
    return Array.from({ length: rows }, () => String(readValue(received, at, type)))
  })
  return decoded[0] ?? []
}

/** The first packet of a client. */
export function nativeHello({ user, password }: NativeAddress): Buffer {
  return Buffer.concat([
    varUint(clientPackets.hello),
    text('pledgeview test'),
    varUint(1),
    varUint(1),
    varUint(revision),
    text(''),
    text(user),
    text(password),
  ])
}

/** What follows the hello. */
export function nativeQuery(query: string): Buffer {
  const noSettings = text('')
  const noCompression = varUint(0)
  const emptyBlock = Buffer.from([1, 0, 2, 255, 255, 255, 255, 0, 0, 0])
  return Buffer.concat([
    varUint(clientPackets.query),
    text(''),
    noSettings,
    varUint(stageComplete),
    noCompression,
    text(query),
    varUint(clientPackets.data),
    text(''),
    emptyBlock,
  ])
}

function varUint(value: number): Buffer {
  const bytes: number[] = []
  let left = value
  while (left >= 128) {
    bytes.push((left % 128) + 128)
    left = Math.floor(left / 128)
  }
  return Buffer.from([...bytes, left])
}

function text(value: string): Buffer {
  return Buffer.concat([varUint(Buffer.byteLength(value)), Buffer.from(value)])
}
