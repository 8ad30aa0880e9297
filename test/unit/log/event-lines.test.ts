import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Line, splitLines } from '../../../services/log/event-lines.ts'

describe('lines of a stream', () => {
  test('are the same, however the stream is cut into chunks', async () => {
    const part = fc.constantFrom('a', 'é', '\n', '\r\n', '\r', '', '\n\n', 'twelve bytes')
    await fc.assert(
      fc.asyncProperty(
        fc.array(part),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (parts, sizes) => {
          const whole = Buffer.from(parts.join(''))
          const expected = texts(await linesOf([whole]))
          expect(texts(await linesOf(cut(whole, sizes)))).toEqual(expected)
          expect(expected).toEqual(splitWhole(whole.toString()))
        },
      ),
    )
  })

  test('take bounded memory, though one is 50 MB long', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    async function* source(): AsyncGenerator<Buffer> {
      for (let i = 0; i < 800; i++) {
        most = Math.max(most, process.memoryUsage().arrayBuffers - before)
        yield chunk
      }
      yield Buffer.from('\nnext\n')
    }
    const lines = await linesOf(source(), 1024 ** 2)
    expect(lines.map(shape)).toEqual([
      { number: 1, text: undefined, isEnded: true },
      { number: 2, text: 'next', isEnded: true },
    ])
    expect(most).toBeLessThan(4 * 1024 ** 2)
  })
})

async function linesOf(source: AsyncIterable<Buffer> | Buffer[], lineBytesMax = 1_000): Promise<Line[]> {
  const chunks = Array.isArray(source) ? toStream(source) : source
  const lines: Line[] = []
  for await (const some of splitLines(chunks, lineBytesMax)) {
    lines.push(...some.map(line => ({ ...line, bytes: line.bytes && Buffer.from(line.bytes) })))
  }
  return lines
}

async function* toStream(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}

function cut(whole: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0, i = 0; at < whole.length; i++) {
    const size = sizes[i % sizes.length] ?? 1
    chunks.push(whole.subarray(at, at + size))
    at += size
  }
  return chunks
}

/** The plain way, for what fits into memory. */
function splitWhole(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map(line => line.replace(/\r$/, ''))
}

function texts(lines: readonly Line[]): string[] {
  return lines.map(({ bytes }) => Buffer.from(bytes ?? 'too long').toString())
}

function shape({ number, bytes, isEnded }: Line): object {
  return { number, text: bytes && Buffer.from(bytes).toString(), isEnded }
}
