/**
 * The demo platform: a recorded sample of change events, of 400 campaigns and 14,600 pledges over two years and the three months
 * that follow. Everything in it is invented.
 *
 * `sample.ndjson.br` has a line per event, in the order of time: `[seconds, key, changes]`. The seconds count from the end of the
 * history, below 0 before it. The changes are the fields of the entity that differ from its line before; the dates among them are
 * such seconds, too. The same end gives the same events.
 */
import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import type { CampaignState, PledgeState, StateEvent } from '../../contracts/events/event.ts'

type Changes = Readonly<Record<string, unknown>>

/** All events, if the history ends at this time (Unix ms). Those after it are what happens next. */
export function* sampleEvents(endMs: number): Generator<StateEvent> {
  const states = new Map<string, Changes>()
  const timeOf = (seconds: number) => endMs + seconds * 1_000
  const dateOf = (seconds: unknown) => (typeof seconds === 'number' ? timeOf(seconds) : null)
  for (const line of recordedLines()) {
    const [seconds, key, changes]: [number, string, Changes] = JSON.parse(line)
    const state = { ...states.get(key), ...changes }
    states.set(key, state)
    // A collection changes nothing that a reader sees. But the days before the history are those of the pledges' latest changes.
    if (changes.status === 'COLLECTED') continue
    const changed_at = timeOf(seconds)
    const common = { ...state, version: changed_at * 1_000, changed_at }
    const [campaign_id = '', pledge_id] = key.split('/')
    if (pledge_id !== undefined) {
      yield { type: 'pledge', data: { ...common, campaign_id, pledge_id } as PledgeState }
      continue
    }
    const dates = {
      created_at: dateOf(state.created_at),
      launch_date: dateOf(state.launch_date),
      end_date: dateOf(state.end_date),
    }
    yield { type: 'campaign', data: { ...common, ...dates, campaign_id } as CampaignState }
  }
}

function recordedLines(): string[] {
  const packed = readFileSync(new URL('./sample.ndjson.br', import.meta.url))
  return brotliDecompressSync(packed).toString().trimEnd().split('\n')
}
