/** The entity tag of a body. Pure. */
import { createHash } from 'node:crypto'

/** Weak, because a proxy may send the same body in another encoding. */
export function weakTagOf(bytes: Buffer): string {
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
}
