/** A small header and a body in one buffer: four bytes of length, the header as JSON, then the body as it is. Pure. */

const lengthBytes = 4

/** Joins the header and the body. */
export function framed(header: object, body: Buffer): Buffer {
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32BE(json.length)
  return Buffer.concat([length, json, body])
}

/**
 * Reads the header and the body. Throws if the bytes are not framed. The body is a copy, so it keeps no larger buffer
 * alive.
 */
export function unframed(bytes: Buffer): { header: unknown; body: Buffer } {
  const bodyAt = lengthBytes + bytes.readUInt32BE(0)
  const header: unknown = JSON.parse(bytes.toString('utf8', lengthBytes, bodyAt))
  return { header, body: Buffer.copyBytesFrom(bytes, bodyAt) }
}
