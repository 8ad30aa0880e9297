import { timingSafeEqual } from 'node:crypto'

/** Whether the authorization header has this token. */
export function isBearer(header: string | undefined, token: string): boolean {
  const presented = Buffer.from(header ?? '')
  const expected = Buffer.from(`Bearer ${token}`)
  return presented.length === expected.length && timingSafeEqual(presented, expected)
}
