/** What the platform said, arranged for the checker: the states of each entity in the order of their versions. */
import { isDeepStrictEqual } from 'node:util'
import type { CampaignState, PledgeState } from '../../../contracts/events/event.ts'
import { isPublic } from '../../support/faults/campaign-histories.ts'
import type { Answer, Disturbed, Entry, EntryOf, Log } from './log.ts'

/** A state, `null` for a tombstone, and when it was said first. */
interface SaidState<S> {
  data: S | null
  at: number
}

export interface Campaign {
  states: SaidState<CampaignState>[]
  /** By the place in the key: c7/p3 is at place 3. */
  pledges: SaidState<PledgeState>[][]
  /** When anything was said of it, also again. */
  saidAt: number[]
}

export interface World {
  campaigns: ReadonlyMap<string, Campaign>
  /** In the order in which they came. */
  answers: readonly Answer[]
  of<K extends Entry['kind']>(kind: K): EntryOf<K>[]
  /** Whether readers must expect this at some time between the two. */
  isDisturbed(what: Disturbed['what'], from: number, to: number, process?: number): boolean
}

/** How long a statement of a world waits for ClickHouse (stage.ts), less what timers differ by. */
const statementMsMax = 5_900

export function worldOf(log: Log): World {
  const byKind = Map.groupBy(log, ({ kind }) => kind)
  const of: World['of'] = kind => (byKind.get(kind) ?? []) as EntryOf<typeof kind>[]
  const answers = of('answer').toSorted((a, b) => a.receivedAt - b.receivedAt)
  const disturbed = [...of('disturbed'), ...answers.flatMap(silenceOf)]
  return {
    campaigns: campaignsOf(of('said')),
    answers,
    of,
    isDisturbed: (what, from, to, process) =>
      disturbed.some(
        one =>
          one.what === what &&
          one.from <= to &&
          one.to >= from &&
          (process === undefined || one.process === undefined || one.process === process),
      ),
  }
}

/** An error after as long as a statement may take: ClickHouse was silent, for example because the machine is busy. */
function silenceOf({ status, sentAt, receivedAt }: Answer): Disturbed[] {
  const isSilent = status === 500 && receivedAt - sentAt >= statementMsMax
  return isSilent ? [{ kind: 'disturbed', what: 'errors', from: sentAt, to: receivedAt }] : []
}

function campaignsOf(said: readonly EntryOf<'said'>[]): Map<string, Campaign> {
  const campaigns = new Map<string, Campaign>()
  for (const { at, events } of said) {
    for (const event of events) {
      if (event.type === 'api-key') continue
      const [id = '', pledge] = event.key.split('/')
      const campaign = campaigns.get(id) ?? { states: [], pledges: [], saidAt: [] }
      campaigns.set(id, campaign)
      campaign.saidAt.push(at)
      if (event.type === 'campaign') add(campaign.states, { data: event.data, at })
      else {
        const place = Number(pledge?.slice(1))
        campaign.pledges[place] ??= []
        add(campaign.pledges[place], { data: event.data, at })
      }
    }
  }
  return campaigns
}

function add<S extends { version: number | bigint }>(states: SaidState<S>[], state: SaidState<S>): void {
  if (states.some(({ data }) => data?.version === state.data?.version)) return
  states.push(state)
  states.sort(({ data: a }, { data: b }) =>
    a === null ? 1 : b === null ? -1 : a.version < b.version ? -1 : 1,
  )
}

/** Whether a state after the `shown` first ones was said by then, and is not public. */
export function mayBeHidden({ states }: Campaign, shown: number, by: number): boolean {
  return states.slice(shown).some(({ data, at }) => at <= by && !isPublic(data))
}

/** Whether the campaign was public, then hidden, and may be public again. */
export function mayBeBack({ states }: Campaign, by: number): boolean {
  const said = states.filter(({ at }) => at <= by).map(({ data }) => isPublic(data))
  const hidden = said.indexOf(false, said.indexOf(true))
  return said.includes(true) && hidden > 0 && said.includes(true, hidden)
}

/** What an answer shows of campaigns: rows, and removals without a title. */
export function shownBy({
  rows,
  removals = [],
}: Answer): { id: string; updated_at: string; title?: string }[] {
  return [...rows, ...removals]
}

/** The campaign of a detail's path. */
export function slugOf(path: string): string | undefined {
  return /^\/projects\/slug-([^/?]+)$/.exec(path)?.[1]
}

/** What the path asks for. */
export function parametersOf(path: string): URLSearchParams {
  return new URLSearchParams(path.split('?')[1])
}

/** How many of these times, which are in their order, are before the moment. */
export function countBefore(times: readonly number[], moment: number): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) < moment) low = middle + 1
    else high = middle
  }
  return low
}

/** What has another value than is expected; `undefined` if nothing has. */
export function differenceBetween(shown: object, expected: object): string | undefined {
  const values = new Map(Object.entries(shown))
  const wrong = Object.entries(expected).filter(
    ([name, value]) => !isDeepStrictEqual(values.get(name), value),
  )
  if (wrong.length === 0) return undefined
  const instead = Object.fromEntries(wrong.map(([name]) => [name, values.get(name)]))
  return `shows ${JSON.stringify(instead)}, and should show ${JSON.stringify(Object.fromEntries(wrong))}`
}
