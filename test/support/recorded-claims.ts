/** What the claims of batches and notes amount to: the model of the statements in recorded-positions.ts. */
import {
  type Claim,
  marginHours,
  type RecordedPosition,
} from '../../services/projector/recorded-positions.ts'

export function recordedOf(claims: readonly Claim[]): Map<string, RecordedPosition> {
  return new Map(
    [...Map.groupBy(claims, ({ place }) => place)].map(([place, ofPlace]) => {
      const recorded = highest(ofPlace)
      const saidAt = Math.max(...ofPlace.filter(({ next }) => next === recorded).map(({ hour }) => hour))
      const certain = highest(ofPlace.filter(({ hour }) => hour < saidAt - marginHours))
      return [place, { recorded, certain }]
    }),
  )
}

function highest(claims: readonly Claim[]): number {
  return claims.reduce((most, { next }) => Math.max(most, next), 0)
}
