/** What the copies of a world should contain at the end according to the changes, and how they differ from it. */
import type { Project } from '../../../contracts/api/schemas.ts'
import type { Poller } from './pollers.ts'
import { launchMomentOf } from './projectors.ts'
import type { CampaignChange, Scenario } from './scenario.ts'

/** A campaign that differs between a copy and the platform at the end. */
export interface Loss {
  poller: string
  id: string
  expected: string | undefined
  held: string | undefined
}

/** What the platform says at the end, by id. */
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

/**
 * The differences of a copy: a lost change, or a campaign that is gone and still there. As long as it is public, the campaign `exempt`
 * may show an older state.
 */
export function lossesOf(
  poller: Poller,
  name: string,
  expected: ReadonlyMap<string, string>,
  exempt: string | undefined,
): Loss[] {
  const copy = poller.copy()
  const ids = new Set([...expected.keys(), ...copy.keys()])
  return [...ids].flatMap(id => {
    const held = describe(copy.get(id))
    const should = expected.get(id)
    const isExempt = id === exempt && should !== undefined
    return isExempt || held === should ? [] : [{ poller: name, id, expected: should, held }]
  })
}

function describe(project: Project | undefined): string | undefined {
  return project && `${project.status} ${project.title} ${project.launch_date}`
}
