/** What the copies of a world should hold in the end, by the changes alone, and where they differ from it. */
import type { Project } from '../../../contracts/api/schemas.ts'
import type { Poller } from './pollers.ts'
import { launchMomentOf } from './projectors.ts'
import type { CampaignChange, Scenario } from './scenario.ts'

/** A campaign of which a copy has something else than the platform when all has settled. */
export interface Loss {
  poller: string
  id: string
  expected: string | undefined
  held: string | undefined
}

/** What the platform says in the end, by id. */
export function publicCampaigns({ batches }: Scenario): Map<string, string> {
  const latest = new Map<string, CampaignChange>()
  for (const change of batches.flatMap(({ changes }) => changes)) {
    if ((latest.get(change.id)?.version ?? 0) < change.version) latest.set(change.id, change)
  }
  return new Map(
    [...latest].flatMap(([id, { state }]) => {
      if (state === null || state.status === 'SUSPENDED') return []
      const launch = new Date(launchMomentOf(state.launchDay)).toISOString()
      return [[id, `${state.status} ${state.title} ${launch}`]]
    }),
  )
}

/** Where a copy differs, among the public campaigns or among all that either has. */
export function lossesOf(
  poller: Poller,
  name: string,
  expected: ReadonlyMap<string, string>,
  among: 'of the public' | 'of all',
): Loss[] {
  const copy = poller.copy()
  const ids = among === 'of all' ? new Set([...expected.keys(), ...copy.keys()]) : expected.keys()
  return [...ids].flatMap(id => {
    const held = describe(copy.get(id))
    return held === expected.get(id) ? [] : [{ poller: name, id, expected: expected.get(id), held }]
  })
}

function describe(project: Project | undefined): string | undefined {
  return project && `${project.status} ${project.title} ${project.launch_date}`
}
