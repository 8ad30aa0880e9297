/** `pledgeview explain`: why the API shows what it shows of a campaign, or why it shows nothing. */
import { partitionName } from '../../log/port.ts'
import {
  type Command,
  commonOptions,
  type Io,
  printJson,
  printLines,
  readArguments,
  UsageError,
} from '../command.ts'
import { onModel } from '../on-model.ts'
import { type Explanation, explainCampaign } from './read.ts'

export const explainCommand: Command = {
  help: {
    call: 'explain CAMPAIGN [--data-dir D] [--json]',
    does:
      'Leads from what the API shows of a campaign back to the fold that wrote it, to the ledger that it was computed from, and to the ' +
      'partitions and offsets of its last events. If the API shows nothing, it says why. CAMPAIGN is an id or a slug.',
    options: commonOptions,
    examples: ['explain c_8842', 'explain lanterns-of-the-delta --json'],
    cost: 'A few queries, of which one reads the batch log of 30 days. It changes nothing.',
  },

  async run(args, io) {
    const { values, positionals } = readArguments(args, commonOptions, { allowPositionals: true })
    const [campaign, ...more] = positionals
    if (campaign === undefined || more.length > 0) throw new UsageError('explain takes one campaign')
    const explanation = await onModel(values['data-dir'], async model =>
      explainCampaign(campaign, await model.shards(), model),
    )
    const why = whyOf(explanation)
    if (values.json) printJson(io, { ...explanation, why })
    else print(explanation, why, io)
    return explanation.ledger === null && explanation.shown === null ? 1 : 0
  },
}

/** The answer, in sentences. The first one says what is shown, the others what may still change it. */
export function whyOf(explanation: Explanation): string[] {
  const { shown, ledger, pledges, unfolded_batches, quarantine, rejects, latest_reject } = explanation
  return [
    shownSentence(),
    unfolded_batches > 0 &&
      `Batches with events of it that are read, and wait for the fold: ${unfolded_batches}.`,
    quarantine && `It is in quarantine since ${quarantine.since}: ${quarantine.reason}.`,
    rejects > 0 &&
      `Open rejects of it: ${rejects}. \`pledgeview rejects show ${latest_reject}\` says why the latest was refused.`,
    pledges.not_counting > 0 &&
      `Pledges that do not count, because they are neither ACTIVE nor COLLECTED: ${pledges.not_counting}.`,
  ].filter(sentence => typeof sentence === 'string')

  function shownSentence(): string {
    if (ledger === null) {
      const waiting = pledges.pledges > 0 ? ` Pledges of it that wait for one: ${pledges.pledges}.` : ''
      return `No event of this campaign was read.${waiting} \`pledgeview status\` says whether the log has more.`
    }
    if (ledger.state === 'deleted') return stillShown('A tombstone deleted it, for good.')
    if (ledger.state === 'not public')
      return stillShown('Its latest state is not public: only LIVE, FUNDED, FAILED and CANCELLED are.')
    if (shown === null) return 'It is public, and was not folded yet.'
    const same = shown.pledges === pledges.pledges && Number(shown.amount) === Number(pledges.amount)
    const waits = unfolded_batches > 0 || quarantine !== null
    if (!same || shown.backers !== pledges.backers || (!shown.is_as_in_ledger && waits))
      return 'The ledger has changed since the fold that wrote what is shown.'
    return shown.is_as_in_ledger
      ? 'What is shown is what the ledger says.'
      : 'The ledger has fields that are not shown: a projector of an earlier version folded the campaign. Its next event will show ' +
          'them, and `pledgeview rebuild` shows those of all campaigns.'
  }

  function stillShown(reason: string): string {
    return shown === null ? reason : `${reason} It is shown until the next fold.`
  }
}

export function print(explanation: Explanation, why: readonly string[], io: Pick<Io, 'stdout'>): void {
  const { campaign_id, shown, ledger, pledges, batches } = explanation
  const numbers = (of: { pledges: number; backers: number; amount: string | null }) =>
    `${of.pledges} pledges of ${of.backers} backers${of.amount === null ? '' : `, ${of.amount}`}`
  const tiers = (of: readonly { reward_id: string; pledges: number }[]) =>
    of.map(({ reward_id, pledges: count }) => `${reward_id || 'no reward'}: ${count}`).join(', ') || 'none'
  const lines = [['campaign', campaign_id], ...why.map((sentence, n) => [n === 0 ? 'why' : '', sentence])]
  if (shown) {
    const { epoch, counter } = shown.fold
    lines.push(
      ['shown', `${shown.status}, ${numbers(shown)}, as ${shown.slug}`],
      ['', `claimed: ${tiers(shown.tiers)}`],
      ['', `since ${shown.updated_at}, by fold ${counter} of epoch ${epoch}`],
    )
  }
  if (ledger)
    lines.push(
      ['ledger', `${ledger.state}, version ${ledger.version}, ${numbers(pledges)}`],
      [
        '',
        `claimed: ${tiers(pledges.by_tier)}; ${pledges.not_counting} do not count, ${pledges.deleted} deleted`,
      ],
    )
  for (const { appended_at, events, positions } of batches) {
    const places = positions.map(at => `${partitionName(at)} before ${at.next}`)
    lines.push(['batch', `${appended_at}, ${events} events: ${places.join(', ')}`])
  }
  printLines(io, 10, lines)
}
