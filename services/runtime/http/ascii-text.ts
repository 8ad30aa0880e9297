/** The text of bytes that are known to be ASCII. */
export function asciiText(bytes: Uint8Array, at: number, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1')
}
