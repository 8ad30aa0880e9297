/** What Redis does when its memory is full, as far as limits and caches depend on it. Pure. */

const isVolatile = /^volatile-/

/**
 * What is wrong with the policy, or `undefined`. `info` is Redis's answer to INFO memory; without an answer nothing is
 * known to be wrong.
 */
export function evictionFault(info: string): string | undefined {
  const policy = settingOf(info, 'maxmemory_policy')
  if (policy === undefined || isVolatile.test(policy) || settingOf(info, 'maxmemory') === '0')
    return undefined
  const effect = policy === 'noeviction' ? 'it stops caching' : 'it forgets requests that count'
  return `Redis's maxmemory-policy is ${policy}, so ${effect} when its memory is full: set it to volatile-ttl`
}

function settingOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1]
}
