/** Lua scripts: what Redis runs as one step. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

export interface RedisScript {
  source: string
  /** Lower-case hex of the source's SHA-1, under which Redis remembers it. */
  sha1: string
}

/** Reads a script of one key. */
export function readScript(file: URL): RedisScript {
  const source = readFileSync(file, 'utf8')
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}

/**
 * Runs the script on the key; strings of its answer are buffers. Where Redis does not know the script yet, which it
 * says before it has run anything, the source is sent. Rejects with what Redis or the connection says.
 */
export async function runScript(
  redis: Redis,
  { source, sha1 }: RedisScript,
  key: string,
  parameters: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.callBuffer('EVALSHA', sha1, 1, key, ...parameters)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return redis.callBuffer('EVAL', source, 1, key, ...parameters)
  }
}
