import { createProjectorGauges } from '../../../services/projector/gauges.ts'

type Parts = Parameters<typeof createProjectorGauges>[0]

/** The gauges of a leader that has nothing to tell, apart from these parts. */
export function idleGauges(
  parts: Pick<Parts, 'metrics'> & Partial<Parts>,
): ReturnType<typeof createProjectorGauges> {
  return createProjectorGauges({
    now: Date.now,
    monotonicMs: () => performance.now(),
    servers: [{ rows: async () => [] }],
    isRunning: () => true,
    isLeading: () => true,
    lastFold: () => undefined,
    firstLedAt: () => undefined,
    oldestUncommitted: () => [],
    unfolded: { read: async () => {}, waitsSince: () => undefined },
    lag: async () => [],
    rejectCounts: async () => ({ total: 0, open: 0 }),
    sharedSlugCount: async () => 0,
    claims: async () => ({
      unknown: { campaigns: 0, pledges: 0, examples: [] },
      oversold: { tiers: 0, claims: 0, examples: [] },
    }),
    reportProjection: async () => {},
    rebuild: async () => undefined,
    ...parts,
  })
}
