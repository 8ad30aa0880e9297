/** Maps a client address to a bucket of the address limiter. Pure. */
import { isIPv4, isIPv6 } from 'node:net'

/**
 * An IPv4 address has its own bucket, also if it is mapped into IPv6. An IPv6 address shares the bucket of its /64,
 * which is what one subscriber gets. Any other text shares one bucket, because a proxy may forward anything.
 */
export function addressBucket(text: string | undefined): string {
  const address = withoutPort(text ?? '')
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return 'unknown'
  // A URL has one form of each address: in lower case, without leading zeros, and without a dotted quad.
  const one = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:(\w+):(\w+)$/.exec(one) ?? []
  return high !== undefined && low !== undefined
    ? [...bytesOf(high), ...bytesOf(low)].join('.')
    : `${firstHextets(one).join(':')}::/64`
}

/** The address without its brackets and its port. Some proxies forward the client's port, which changes all the time. */
export function withoutPort(address: string): string {
  const [, bracketed, plain = address] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(address) ?? []
  return bracketed ?? plain
}

function firstHextets(address: string): string[] {
  const [left = '', right] = address.split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  const gap: string[] = right === undefined ? [] : Array(8 - head.length - tail.length).fill('0')
  return [...head, ...gap, ...tail].slice(0, 4)
}

function bytesOf(hextet: string): number[] {
  const number = Number.parseInt(hextet, 16)
  return [number >> 8, number & 255]
}
