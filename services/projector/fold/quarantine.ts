/**
 * The quarantine: campaigns that the common fold could not fold within its bounds of time and memory. It leaves them out and goes on.
 *
 * Promises:
 * - They do not hold the others. Each is tried alone under a longer bound of time, one after the other in the fold's line, and all
 *   their tries together take at most about a tenth of the time. One that was folded alone in half the time of a common statement
 *   takes part in the common folds again.
 * - Nothing is lost. That a campaign is in quarantine is recorded before the progress of the fold that left it out. It is tried
 *   again whether it has changed or not.
 * - A withdrawal does not wait. Before each fold, campaigns that are no longer public are marked, without reading a pledge. One that is
 *   not public when it is put here is marked at once, also while a generation is built. Nobody waits to see them, so they are neither
 *   named nor counted. The common folds leave them out as before: their pledges may still change, for example when they are refunded.
 */
import { type Databases, type Statement, TablesError } from '../../tables/port.ts'
import type { FoldLeadership } from './fold-leadership.ts'
import { fileStatement, foldCampaignsStatement } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { runWhole } from './line.ts'

/** What the table records of a campaign in quarantine. */
export interface QuarantinedCampaign {
  campaign: string
  /** How many tries in a row have failed. 0: what is shown is what the last try found. */
  failures: number
  /** Why it last could not be folded: the name of ClickHouse's error. */
  reason: string
}

/** What happened to one campaign. */
export interface QuarantineChange extends QuarantinedCampaign {
  event: 'quarantined' | 'folded alone' | 'not folded' | 'released'
}

/** Is told all public campaigns in quarantine. Without a change, they were read from the table. */
export type OnQuarantine = (all: readonly QuarantinedCampaign[], change?: QuarantineChange) => void

export type Quarantine = ReturnType<typeof createQuarantine>

interface Member extends QuarantinedCampaign {
  isPublic: boolean
  /** Monotonic ms. */
  triedAt: number
}

const campaignsMax = 100
// A try that took t is followed by a pause of 9 t, and of this at least.
const pauseMsMin = 1_000
const pauseFactor = 9

export function createQuarantine(dependencies: FoldWorkerDependencies, lead: FoldLeadership) {
  const { tables, databases, config, monotonicMs, stampsFrom, onQuarantine = () => {} } = dependencies
  let members = new Map<string, Member>()
  let nextTryAt = Number.NEGATIVE_INFINITY
  /** The campaigns that are not public, and that this leader has marked. */
  let marked = ''

  async function change({ event, ...now }: QuarantineChange, isPublic = true): Promise<void> {
    const isQuarantined = event !== 'released'
    const parameters = { ...now, is_quarantined: isQuarantined }
    await runWhole(lead, fileStatement('record-quarantine', databases, lead.nextStep(), parameters))
    if (isQuarantined) members.set(now.campaign, { ...now, isPublic, triedAt: monotonicMs() })
    else members.delete(now.campaign)
    if (isPublic) onQuarantine(publicMembers(), { ...now, event })
  }

  /** Marks the campaigns in quarantine that are not public. */
  const withdraw = () => runWhole(lead, fileStatement('withdraw', databases, lead.nextStep()))

  function publicMembers(): Member[] {
    return [...members.values()].filter(({ isPublic }) => isPublic)
  }

  async function read(): Promise<void> {
    const records = await tables.rows<Omit<Member, 'triedAt'>>(quarantineStatement(databases))
    const triedAt = (campaign: string) => members.get(campaign)?.triedAt ?? Number.NEGATIVE_INFINITY
    members = new Map(
      records.map(record => [record.campaign, { ...record, triedAt: triedAt(record.campaign) }]),
    )
    onQuarantine(publicMembers())
  }

  async function tryAlone({ campaign, failures, reason }: Member): Promise<void> {
    const startedAt = monotonicMs()
    const step = { ...lead.nextStep(), msMax: config.PLEDGEVIEW_FOLD_ALONE_MS_MAX }
    const refusal = await lead.run(foldCampaignsStatement(databases, step, { campaign }))
    const elapsedMs = monotonicMs() - startedAt
    nextTryAt = monotonicMs() + Math.max(pauseFactor * elapsedMs, pauseMsMin)
    if (refusal) {
      await change({ campaign, event: 'not folded', failures: failures + 1, reason: refusal.reason })
    } else if (elapsedMs <= config.PLEDGEVIEW_FOLD_MS_MAX / 2) {
      await change({ campaign, event: 'released', failures: 0, reason })
    } else if (failures > 0) {
      await change({ campaign, event: 'folded alone', failures: 0, reason })
    }
  }

  return {
    /** Reads which campaigns are in quarantine. For a new leader. */
    async load(): Promise<void> {
      members = new Map()
      nextTryAt = Number.NEGATIVE_INFINITY
      marked = ''
      await read()
    },

    isEmpty: () => members.size === 0,

    /**
     * Puts a campaign into quarantine. One that is not public is marked at once. Throws for a public one if there are too many, because then
     * the reason is not in single campaigns, or if a generation is built, because that must have it.
     */
    async add(campaign: string, reason: string, isPublic: boolean): Promise<void> {
      if (isPublic && stampsFrom !== undefined)
        throw new TablesError(`campaign ${campaign} cannot be folded: ${reason}`, { retryable: false })
      if (isPublic && publicMembers().length >= campaignsMax) {
        throw new TablesError(
          `${campaignsMax} campaigns are in quarantine, and ${campaign} cannot be folded either`,
          { retryable: true },
        )
      }
      await change({ campaign, event: 'quarantined', failures: 1, reason }, isPublic)
      if (!isPublic) await withdraw()
    },

    /**
     * Marks those that are no longer public, and tries the next one if it is time for it. Runs before each fold. Resolves with whether it
     * may have written the row of a campaign.
     */
    async tend(): Promise<boolean> {
      if (members.size === 0) return false
      await read()
      const gone = [...members.values()]
        .flatMap(({ campaign, isPublic }) => (isPublic ? [] : campaign))
        .join()
      const hasChanged = gone !== marked
      if (hasChanged) await withdraw()
      marked = gone
      if (monotonicMs() < nextTryAt) return hasChanged
      const [next] = publicMembers().toSorted((a, b) => a.triedAt - b.triedAt)
      if (!next) return hasChanged
      next.triedAt = monotonicMs()
      await tryAlone(next)
      return true
    },
  }
}

/** The campaigns in quarantine, and whether the ledger has them as public. */
export function quarantineStatement({ ledger }: Databases): Statement {
  return {
    query: `SELECT campaign_id AS campaign, failures, reason, toBool(campaign_id IN (
              SELECT campaign_id FROM ${ledger}.campaign_ledger FINAL WHERE is_public
                AND campaign_id IN (SELECT campaign_id FROM ${ledger}.quarantine FINAL WHERE is_quarantined)
            )) AS isPublic
            FROM ${ledger}.quarantine FINAL WHERE is_quarantined ORDER BY campaign_id`,
  }
}
