/**
 * Campaigns that are set aside: the common fold could not fold them within its bounds, so it leaves them out and goes on, and
 * each is folded alone, under a longer bound of time.
 *
 * Promises:
 * - The common fold does not wait for them. One is folded at a time, beside the common folds.
 * - Nothing is lost. That a campaign is set aside is recorded before the progress of the fold that left it out. A new leader
 *   folds each of them, because it does not know which have changes. If a campaign is touched while it is folded alone, it is
 *   folded again.
 * - Pollers miss no change. Folding alone only stages the row. A short statement with the bounds of every fold shows it, under
 *   a stamp of its own. So a row is never visible later than its stamp promises, however long the staging takes.
 *
 * A campaign takes part in the common folds again if it was folded alone in a quarter of the commit horizon. If it cannot
 * be folded alone either, it is tried again, each time after a longer wait. At most `setAsideMax` campaigns are set aside.
 */
import { messageOf } from '../../shared/message-of.ts'
import { TablesError } from '../../shared/tables/port.ts'
import { type FoldLeadership, refuseLasting } from './fold-leadership.ts'
import { refusalOf } from './fold-pieces.ts'
import { type BatchRange, foldCampaignsStatement } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import {
  dropStagedStatement,
  publishStagedStatement,
  recordSetAsideStatement,
  type SetAsideRecord,
  setAsideStatement,
  touchedOfStatement,
} from './set-aside-statements.ts'

export interface SetAside {
  /** Reads which campaigns are set aside. For a new leader. */
  load(): Promise<void>
  /** The campaigns that the common fold leaves out. */
  campaigns(): string[]
  /** Sets a campaign aside. Throws if there are too many: then the reason is not in single campaigns. */
  add(campaign: string, reason: string): Promise<void>
  /** Notes which of the campaigns are touched by batches that the common fold is about to fold without them. */
  noteTouched(range: BatchRange): Promise<void>
  /** Shows what was folded alone since the last call, and begins with the next campaign. Does not wait for it. Runs before each fold. */
  tend(): Promise<void>
}

/** What happened to one campaign. */
export interface SetAsideChange {
  campaign: string
  event: 'set aside' | 'folded alone' | 'not folded' | 'back'
  reason: string
  failures: number
}

/** Is told all campaigns that are set aside now. Without a change, a new leader has read them from the table. */
export type OnSetAside = (all: readonly SetAsideRecord[], change?: SetAsideChange) => void

interface Member extends SetAsideRecord {
  /** Whether the table has it. Until then, no progress may be recorded without it. */
  isRecorded: boolean
  /** Whether it was touched since its last fold alone began. */
  isTouched: boolean
  /** When it may be folded next, ms of the monotonic clock. */
  dueAt: number
}

/** One campaign that is being folded alone. */
interface Attempt {
  member: Member
  stagedId: bigint
  /** Set when its statement has ended. */
  outcome?: { elapsedMs: number; failure?: string }
}

const setAsideMax = 100
const retryMsMin = 10_000
const retryMsMax = 1_800_000

export function createSetAside(dependencies: FoldWorkerDependencies, lead: FoldLeadership): SetAside {
  const { tables, databases, settings, monotonicMs, onSetAside = () => {} } = dependencies
  let members = new Map<string, Member>()
  let attempt: Attempt | undefined

  /** Records what is so now. Without an event it is no news, only the record. */
  async function change(
    member: Member,
    event: SetAsideChange['event'] | undefined,
    now: Partial<SetAsideRecord>,
  ) {
    const { campaign, reason, failures, isBehind } = { ...member, ...now }
    const isSetAside = event !== 'back'
    const record = { campaign, reason, failures, isBehind, isSetAside }
    await tables.run(recordSetAsideStatement(databases, lead.nextStep(1, 0), record))
    Object.assign(member, now, { isRecorded: true })
    if (!isSetAside) members.delete(campaign)
    onSetAside([...members.values()], event && { campaign, event, reason, failures })
  }

  /** Stages the row of a campaign. The statement runs beside the common folds. */
  function begin(member: Member): Attempt {
    const startedAt = monotonicMs()
    const step = { ...lead.nextStep(1, 0), msMax: settings.aloneMsMax }
    const { platformDigits } = settings
    const touched = { campaign: member.campaign }
    const begun: Attempt = { member, stagedId: step.foldId }
    const end = (failure?: string) => {
      begun.outcome = { elapsedMs: monotonicMs() - startedAt, ...(failure !== undefined && { failure }) }
    }
    member.isTouched = false
    const statement = foldCampaignsStatement(databases, step, { touched, platformDigits, isStaged: true })
    tables.run(statement).then(
      () => end(),
      error => end(refusalOf(error)?.reason ?? messageOf(error)),
    )
    return begun
  }

  /** Shows the staged row, and records that it is not in doubt. Without that, the next leader would give it another stamp. */
  async function publish({ member: { campaign }, stagedId }: Attempt): Promise<void> {
    const startedAt = monotonicMs()
    await lead.runPieces({
      name: 'showing a campaign that was folded alone (publish-staged.sql)',
      pieces: 1,
      statementOf: step => publishStagedStatement(databases, step, { campaign, stagedId }),
      partsOf: refuseLasting(1),
      afterFailure: lead.endDoubt,
    })
    await lead.record({}, 1, monotonicMs() - startedAt)
  }

  /** Draws the consequences of an attempt that has ended. Can be called again if it fails. */
  async function finish(ended: Attempt, { elapsedMs, failure }: NonNullable<Attempt['outcome']>) {
    const { member } = ended
    if (failure !== undefined) {
      const failures = member.failures + 1
      await change(member, 'not folded', { failures, reason: failure, isBehind: true })
      member.isTouched = true
      member.dueAt = monotonicMs() + Math.min(retryMsMin * 2 ** (failures - 1), retryMsMax)
      return
    }
    await publish(ended)
    if (!member.isTouched && elapsedMs <= settings.horizonMs / 4) {
      await change(member, 'back', { failures: 0, isBehind: false })
    } else if (member.isBehind) {
      // If it was touched meanwhile, changes are still missing.
      await change(member, 'folded alone', { failures: 0, isBehind: member.isTouched })
    }
  }

  return {
    async load() {
      attempt = undefined
      const records = await tables.rows<SetAsideRecord>(setAsideStatement(databases))
      const dueAt = monotonicMs()
      members = new Map(
        records.map(({ campaign, isBehind, failures, reason }) => [
          campaign,
          { campaign, isBehind, failures, reason, isRecorded: true, isTouched: true, dueAt },
        ]),
      )
      onSetAside([...members.values()])
    },

    campaigns: () => [...members.keys()],

    async add(campaign, reason) {
      if (members.size >= setAsideMax) {
        throw new TablesError(
          `${setAsideMax} campaigns are set aside, and ${campaign} cannot be folded either`,
          {
            retryable: true,
          },
        )
      }
      const dueAt = monotonicMs()
      const member = {
        campaign,
        reason,
        isBehind: true,
        failures: 0,
        isRecorded: false,
        isTouched: true,
        dueAt,
      }
      // If recording it fails, the fold fails too, and the next one records it first.
      members.set(campaign, member)
      await change(member, 'set aside', {})
    },

    async noteTouched(range) {
      if (members.size === 0) return
      const statement = touchedOfStatement(databases, range, [...members.keys()])
      for (const { campaign } of await tables.rows<{ campaign: string }>(statement)) {
        const member = members.get(campaign)
        if (!member) continue
        member.isTouched = true
        // The common fold is about to count its batches as folded, and it is not. The record says so.
        if (!member.isBehind) await change(member, undefined, { isBehind: true })
      }
    },

    async tend() {
      for (const member of members.values()) if (!member.isRecorded) await change(member, 'set aside', {})
      if (attempt?.outcome) {
        await finish(attempt, attempt.outcome)
        const { stagedId } = attempt
        attempt = undefined
        // If this fails, the row is dropped after its time.
        await tables.run(dropStagedStatement(databases, stagedId)).catch(() => undefined)
      }
      const due = [...members.values()].filter(({ isTouched, dueAt }) => isTouched && dueAt <= monotonicMs())
      const next = due.toSorted((a, b) => a.dueAt - b.dueAt)[0]
      if (!attempt && next) attempt = begin(next)
    },
  }
}
