/** Maps a client address to a bucket of the address limiter. Pure. */
import { isIPv4, isIPv6 } from 'node:net'

/**
 * An IPv4 address has its own bucket, also if it is mapped into IPv6. An IPv6 address shares the bucket of its /64,
 * which is what one subscriber gets. Any other text shares one bucket, because a proxy may forward anything.
 */
export function addressBucket(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return 'unknown'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return mapped ?? `${firstHextets(address).join(':')}::/64`
}

function firstHextets(address: string): string[] {
  const [left = '', right] = (address.split('%')[0] ?? '').toLowerCase().split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  // A dotted quad at the end is two of the eight groups.
  const tailLength = tail.length + (tail.at(-1)?.includes('.') ? 1 : 0)
  const gap: string[] = right === undefined ? [] : Array(Math.max(0, 8 - head.length - tailLength)).fill('0')
  return [...head, ...gap, ...tail].slice(0, 4).map(hextet => hextet.replace(/^0+(?=.)/, ''))
}
