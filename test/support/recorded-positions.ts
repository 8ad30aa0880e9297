/** What the SQL of recorded-positions.ts computes, as plainly as possible. */
import type { RecordedPosition } from '../../services/projector/recorded-positions.ts'

/** A batch or a note said at this hour that everything before `next` is in the tables. */
export interface Claim {
  place: string
  next: number
  hour: number
}

const marginHours = 24

export function recordedOf(claims: readonly Claim[]): RecordedPosition[] {
  const byPlace = Map.groupBy(claims, ({ place }) => place)
  return [...byPlace].map(([place, ofPlace]) => {
    const recorded = Math.max(...ofPlace.map(({ next }) => next))
    const saidAt = Math.max(...ofPlace.filter(({ next }) => next === recorded).map(({ hour }) => hour))
    const before = ofPlace.filter(({ hour }) => hour < saidAt - marginHours).map(({ next }) => next)
    return { place, recorded, certain: Math.max(0, ...before) }
  })
}
