/**
 * A real service for a suite, from the first source that has it: an address in the environment; Docker, if an engine
 * answers and the image is present or can be pulled; a program of this machine. If no source has it, the suite is
 * skipped with every reason. A test that makes a service unavailable, kills it or pauses it, starts its own program
 * instead.
 */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { needs, type Requirement } from '../runner/requirements.ts'

/** One way to get a service of some kind. */
export interface ServiceSource<S> {
  /** Never rejects, and takes less than a second if the answer is no, without downloads. */
  requirement(): Promise<Requirement>
  open(): Promise<S>
}

export interface TestService<S> extends ServiceSource<S> {
  name: string
}

const openMsMax = 300_000

/**
 * The service from the first source that has it. The requirement's `source` describes that source, and says why the sources
 * before it were not used.
 */
export function inOrder<S>(name: string, sources: readonly ServiceSource<S>[]): TestService<S> {
  async function find() {
    const reasons: string[] = []
    for (const source of sources) {
      const { isMet, reason, source: from } = await source.requirement()
      if (isMet) {
        const because = reasons.length > 0 ? ` (${reasons.join('; ')})` : ''
        return { requirement: { isMet, reason: '', source: `${name}: ${from}${because}` }, open: source.open }
      }
      reasons.push(reason)
    }
    const reason = `there is no ${name}: ${reasons.join('; ')}`
    return { requirement: { isMet: false, reason }, open: () => Promise.reject(new Error(reason)) }
  }
  let found: ReturnType<typeof find> | undefined
  const once = () => {
    found ??= find()
    return found
  }
  return {
    name,
    requirement: async () => (await once()).requirement,
    open: async () => (await once()).open(),
  }
}

/** The service at the address in an environment variable. */
export function atAddress<S>(variable: string, open: (address: string) => Promise<S>): ServiceSource<S> {
  const address = process.env[variable]
  return {
    requirement: async () => ({
      isMet: address !== undefined && address !== '',
      reason: `${variable} is not set`,
      source: `at ${variable}`,
    }),
    open: () => open(address ?? ''),
  }
}

/**
 * Opens the service for the tests of the suite or file that calls it, and closes it after them. If the service is not
 * available, they are skipped with the reason. It can be used inside hooks and tests.
 */
export function useService<S extends { close(): Promise<void> }>(service: ServiceSource<S>): () => S {
  let requirement: Requirement
  let opened: S | undefined
  beforeAll(async () => {
    requirement = await service.requirement()
    if (requirement.isMet) opened = await service.open()
  }, openMsMax)
  beforeEach(context => needs(context, requirement))
  afterAll(() => opened?.close())
  return () => {
    if (!opened) throw new Error('the service is not open')
    return opened
  }
}
