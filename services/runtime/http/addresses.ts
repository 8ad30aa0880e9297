/** Addresses of clients: their buckets in the limits, and sets of them as settings name them (addresses and CIDR ranges). Pure. */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

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
function withoutPort(address: string): string {
  const [, bracketed, plain = address] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(address) ?? []
  return bracketed ?? plain
}

function firstHextets(address: string): string[] {
  const [head = [], tail = []] = address.split('::').map(side => side.split(':').filter(Boolean))
  return [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail].slice(0, 4)
}

function bytesOf(hextet: string): number[] {
  const number = Number.parseInt(hextet, 16)
  return [number >> 8, number & 255]
}

/** Why the text is neither an address nor a range, or `undefined` if it is one. */
export function addressRangeFault(text: string): string | undefined {
  const { address, bits, prefix } = parsed(text)
  if (bits === 0) return `${JSON.stringify(address)} is not an IP address`
  if (prefix === undefined) return undefined
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) {
    return `${JSON.stringify(text)} is not a range: after the slash comes a number from 1 to ${bits}`
  }
  return Number(prefix) === 0 ? `${JSON.stringify(text)} is every address` : undefined
}

/**
 * Whether an address is in one of these ranges, with or without a port. An IPv4 address also matches if it is mapped into
 * IPv6. Any text that is not an address is in none. Throws for a range that `addressRangeFault` refuses.
 */
export function addressMatcher(ranges: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const { address, bits, prefix = String(bits) } = parsed(range)
    list.addSubnet(address, Number(prefix), bits === 128 ? 'ipv6' : 'ipv4')
  }
  if (ranges.length === 0) return () => false
  return (text = '') => {
    const address = withoutPort(text)
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

/** `bits`: the length of the address, 0 if it is none. */
function parsed(text: string): { address: string; bits: 0 | 32 | 128; prefix: string | undefined } {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const version = isIP(address)
  const bits = version === 6 ? 128 : version === 4 ? 32 : 0
  return { address, bits, prefix: slash < 0 ? undefined : text.slice(slash + 1) }
}
