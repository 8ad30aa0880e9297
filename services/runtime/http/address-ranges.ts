/** Sets of IP addresses, as settings name them: single addresses and CIDR ranges. Pure. */
import { BlockList, isIP } from 'node:net'
import { withoutPort } from './address-bucket.ts'

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
