/**
 * Which names the ops port answers for. A web page can have its own name lead to a private address, and then read what
 * a browser there can reach (DNS rebinding). The browser still sends the page's name in `Host`. So only names that no
 * page can have are answered: addresses, the loopback's names, and the names in the configuration. Pure.
 */
import { isIP } from 'node:net'

/** The host in a `Host` header, without its port, in lower case; `undefined` if the header is not well-formed. */
export function hostOf(header: string): string | undefined {
  const [, bracketed, name] = /^(?:\[([\da-f:.]+)\]|([^\s:@/\\[\]]+))(?::\d{1,5})?$/i.exec(header) ?? []
  return (bracketed ?? name)?.toLowerCase().replace(/\.$/, '')
}

/** Whether a request is answered. Without a `Host` it is: every browser sends one, and some probes do not. */
export function hostMatcher(names: readonly string[]): (header: string | undefined) => boolean {
  const allowed = new Set(['localhost', ...names.map(name => name.toLowerCase())])
  return header => {
    if (header === undefined) return true
    const host = hostOf(header)
    return host !== undefined && (isIP(host) !== 0 || allowed.has(host) || host.endsWith('.localhost'))
  }
}
