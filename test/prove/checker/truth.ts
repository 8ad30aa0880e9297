/** What the platform said, arranged for the checker: the states of each entity in the order of their versions. */
import type { CampaignState, ChangeEvent, PledgeState } from '../../../contracts/events/event.ts'
import { isPublic } from '../../support/faults/campaign-histories.ts'
import type { Answer, Disturbed, Entry, Log, Quiet, Row } from './log.ts'

/** A state, `null` for a tombstone, and when it was said first. */
export interface SaidState<S> {
  data: S | null
  at: number
}

export interface Campaign {
  states: SaidState<CampaignState>[]
  /** By the place in the key: c7/p3 is at place 3. */
  pledges: SaidState<PledgeState>[][]
}

export interface World {
  log: Log
  campaigns: ReadonlyMap<string, Campaign>
  /** In the order in which they came. */
  answers: readonly Answer[]
  quiets: readonly Quiet[]
  /** Whether readers must expect this at some time between the two. */
  isDisturbed(what: Disturbed['what'], from: number, to: number, process?: number): boolean
  rowsOf(answer: Answer): Row[]
  eventsUntil(at: number): ChangeEvent[]
}

/** How long a statement of a world waits for ClickHouse (stage.ts), less what timers differ by. */
const statementMsMax = 5_900

export function worldOf(log: Log): World {
  const of = <K extends Entry['kind']>(kind: K) =>
    log.entries.filter((entry): entry is Extract<Entry, { kind: K }> => entry.kind === kind)
  const said = of('said')
  const answers = of('answer').toSorted((a, b) => a.receivedAt - b.receivedAt)
  const disturbed = [...of('disturbed'), ...answers.flatMap(silenceOf)]
  return {
    log,
    campaigns: campaignsOf(said.flatMap(({ at, events }) => events.map(event => ({ at, event })))),
    answers,
    quiets: of('quiet'),
    isDisturbed: (what, from, to, process) =>
      disturbed.some(
        one =>
          one.what === what &&
          one.from <= to &&
          one.to >= from &&
          (process === undefined || one.process === process),
      ),
    rowsOf: ({ rows = [] }) => rows.map(n => log.rows[n] as Row),
    eventsUntil: time => said.filter(({ at }) => at <= time).flatMap(({ events }) => events),
  }
}

/** An error after as long as a statement may take: ClickHouse was silent, for example because the machine is busy. */
function silenceOf({ status, sentAt, receivedAt }: Answer): Disturbed[] {
  const isSilent = status === 500 && receivedAt - sentAt >= statementMsMax
  return isSilent ? [{ kind: 'disturbed', what: 'errors', from: sentAt, to: receivedAt }] : []
}

function campaignsOf(said: readonly { at: number; event: ChangeEvent }[]): Map<string, Campaign> {
  const campaigns = new Map<string, Campaign>()
  for (const { at, event } of said) {
    if (event.type === 'api-key') continue
    const [id = '', pledge] = event.key.split('/')
    const campaign = campaigns.get(id) ?? { states: [], pledges: [] }
    campaigns.set(id, campaign)
    if (event.type === 'campaign') addState(campaign.states, event.data, at)
    else {
      const place = Number(pledge?.slice(1))
      while (campaign.pledges.length <= place) campaign.pledges.push([])
      addState(campaign.pledges[place] as SaidState<PledgeState>[], event.data, at)
    }
  }
  const isBefore = <S extends { version: number | bigint }>(a: SaidState<S>, b: SaidState<S>) =>
    a.data === null ? 1 : b.data === null ? -1 : a.data.version < b.data.version ? -1 : 1
  for (const { states, pledges } of campaigns.values()) {
    states.sort(isBefore)
    for (const one of pledges) one.sort(isBefore)
  }
  return campaigns
}

function addState<S extends { version: number | bigint }>(
  states: SaidState<S>[],
  data: S | null,
  at: number,
): void {
  if (!states.some(one => one.data?.version === data?.version)) states.push({ data, at })
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
