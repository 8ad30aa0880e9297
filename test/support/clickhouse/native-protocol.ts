/**
 * ClickHouse's native protocol in the version of 2016, which servers still support: enough to run one query per connection, as
 * a user.
 *
 * Source: ClickHouse, `src/Core/Protocol.h` (packets) and `ProtocolDefines.h` (what a revision adds).
 */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface NativeAddress {
  port: number
  user: string
  password: string
  database?: string
}

/** ClickHouse's error. */
export class NativeError extends Error {
  override name = 'NativeError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

// Below 54032 a query has no client description, and the server sends few optional fields.
const revision = 54_000
const clientPackets = { hello: 0, query: 1, data: 2 } as const
const serverPackets = { hello: 0, data: 1, exception: 2, progress: 3, endOfStream: 5, profile: 6 } as const
const stageComplete = 2
const numberBytes: Readonly<Record<string, number>> = { UInt8: 1, UInt16: 2, UInt32: 4, UInt64: 8 }

/** The values of the first column. Rejects with `NativeError` if the server refuses. Text and unsigned numbers only. */
export async function askNative(address: NativeAddress, query: string): Promise<string[]> {
  const socket = connect({ host: '127.0.0.1', port: address.port })
  const reader = createReader(socket)
  try {
    await once(socket, 'connect')
    socket.write(nativeHello(address))
    const packet = await reader.varUint()
    if (packet === serverPackets.exception) throw await reader.exception()
    if (packet !== serverPackets.hello) throw new Error(`packet ${packet} came, and not a hello`)
    await reader.text()
    for (let i = 0; i < 3; i++) await reader.varUint()
    socket.write(nativeQuery(query))
    return await answer(reader)
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

async function answer(reader: Reader): Promise<string[]> {
  const values: string[] = []
  for (;;) {
    const packet = await reader.varUint()
    switch (packet) {
      case serverPackets.data:
        values.push(...(await reader.block()))
        break
      case serverPackets.exception:
        throw await reader.exception()
      case serverPackets.progress:
        for (let i = 0; i < 3; i++) await reader.varUint()
        break
      case serverPackets.profile:
        for (let i = 0; i < 3; i++) await reader.varUint()
        await reader.bytes(1)
        await reader.varUint()
        await reader.bytes(1)
        break
      case serverPackets.endOfStream:
        return values
      default:
        throw new Error(`packet ${packet} came, which is not known`)
    }
  }
}

/** The first packet of a client. */
export function nativeHello({ user, password, database = '' }: NativeAddress): Buffer {
  return Buffer.concat([
    varUint(clientPackets.hello),
    text('pledgeview test'),
    varUint(1),
    varUint(1),
    varUint(revision),
    text(database),
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

type Reader = ReturnType<typeof createReader>

function createReader(source: AsyncIterable<Buffer>) {
  const chunks = source[Symbol.asyncIterator]()
  let buffer = Buffer.alloc(0)

  async function bytes(length: number): Promise<Buffer> {
    while (buffer.length < length) {
      const { value, done } = await chunks.next()
      if (done) throw new Error('the server closed the connection')
      buffer = Buffer.concat([buffer, value])
    }
    const taken = buffer.subarray(0, length)
    buffer = buffer.subarray(length)
    return taken
  }

  async function readVarUint(): Promise<number> {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = (await bytes(1))[0] ?? 0
      value += (byte % 128) * factor
      if (byte < 128) return value
    }
  }

  async function readText(): Promise<string> {
    return (await bytes(await readVarUint())).toString()
  }

  async function column(type: string, rows: number): Promise<string[]> {
    const values: string[] = []
    const width = numberBytes[type]
    if (width === undefined && type !== 'String') throw new Error(`no decoder for ${type}`)
    for (let row = 0; row < rows; row++) {
      if (width === undefined) values.push(await readText())
      else values.push(String((await bytes(width)).readUIntLE(0, Math.min(width, 6))))
    }
    return values
  }

  return {
    bytes,
    varUint: readVarUint,
    text: readText,

    /** The first column. */
    async block(): Promise<string[]> {
      await readText()
      // The block's header: fields by their numbers, up to 0.
      for (let field = await readVarUint(); field !== 0; field = await readVarUint()) {
        await bytes(field === 1 ? 1 : 4)
      }
      const columns = await readVarUint()
      const rows = await readVarUint()
      const decoded: string[][] = []
      for (let i = 0; i < columns; i++) {
        await readText()
        decoded.push(await column(await readText(), rows))
      }
      return decoded[0] ?? []
    },

    async exception(): Promise<NativeError> {
      const code = (await bytes(4)).readInt32LE()
      await readText()
      return new NativeError(code, await readText())
    },
  }
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
