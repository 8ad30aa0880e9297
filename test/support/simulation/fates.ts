/** The fates of statements and requests, drawn from a seed: mostly quick, some late, some lost. */
import { chance, intBetween, pickWeighted, type Random } from '../../../services/demo/random.ts'

/** The fate of a statement that writes campaigns. Times are milliseconds of virtual time. */
export type WriteFate =
  /** It runs for this time, and its caller sees it end. */
  | { type: 'seen'; runMs: number }
  /** Its caller loses the connection after a while. The statement continues. */
  | { type: 'unseen'; runMs: number; lostAfterMs: number }
  /** It is lost on the way. */
  | { type: 'never'; lostAfterMs: number }
  /** ClickHouse cancels it after its time limit. Some of its rows may be visible by then. */
  | { type: 'ended'; someAfterMs: number | undefined }

/** The fate of a small write: an insert, an epoch, a record. */
export type SmallFate = 'seen' | 'ran unseen' | 'never'

export interface FateSettings {
  random: Random
  wayMsMax: number
  /** The least time of a statement that writes: more than a tick, so that no two of one fold worker have the same stamp. */
  writeMsMin: number
  /** The longest time of a statement whose end is seen, in horizons of its fold worker. */
  lateHorizonsMax: number
  /** Share of statements that have a fault. */
  trouble: () => number
  /** Share of statements that take as long as possible without being late. */
  edges: () => number
}

export interface Fates {
  /** `horizonMs`: the commit horizon of the fold worker. */
  write(horizonMs: number): WriteFate
  smallWrite(): SmallFate
  /** One way over the network. */
  wayMs(): number
  smallRunMs(): number
  /** How long a statement of the query service runs; undefined: it fails. */
  queryRunMs(): number | undefined
  /** Whether a request of a consumer is lost on the way. */
  isRequestLost(): boolean
}

export function createFates({
  random,
  wayMsMax,
  writeMsMin,
  lateHorizonsMax,
  trouble,
  edges,
}: FateSettings): Fates {
  const ms = (min: number, max: number) => intBetween(random, min, max)
  const inTrouble = () => chance(random, trouble())

  function troubled(horizonMs: number): WriteFate {
    const type = pickWeighted<'late' | 'unseen' | 'never' | 'ended'>(random, [
      ['late', 4],
      ['unseen', 3],
      ['never', 1],
      ['ended', 2],
    ])
    switch (type) {
      case 'late':
        return { type: 'seen', runMs: ms(horizonMs / 4, lateHorizonsMax * horizonMs) }
      case 'unseen': {
        // ClickHouse cancels a statement whose caller does not see its end, so it is over within a horizon.
        const runMs = ms(writeMsMin, 0.8 * horizonMs)
        return { type: 'unseen', runMs, lostAfterMs: ms(0, runMs) }
      }
      case 'never':
        return { type: 'never', lostAfterMs: ms(0, horizonMs / 4) }
      case 'ended':
        return {
          type: 'ended',
          someAfterMs: chance(random, 0.5) ? ms(0, horizonMs / 2) : undefined,
        }
      default:
        return type satisfies never
    }
  }

  return {
    write(horizonMs) {
      if (inTrouble()) return troubled(horizonMs)
      return {
        type: 'seen',
        runMs: chance(random, edges()) ? horizonMs / 2 : ms(writeMsMin, 200 + writeMsMin),
      }
    },
    smallWrite: () => (chance(random, trouble() / 8) ? pickSmall(random) : 'seen'),
    wayMs: () => ms(0, wayMsMax),
    smallRunMs: () => ms(1, 20),
    queryRunMs() {
      if (chance(random, trouble() / 16)) return undefined
      return inTrouble() && chance(random, 0.3) ? ms(50, 3_000) : ms(1, 40)
    },
    isRequestLost: () => chance(random, trouble() / 16),
  }
}

function pickSmall(random: Random): SmallFate {
  return chance(random, 0.5) ? 'ran unseen' : 'never'
}
