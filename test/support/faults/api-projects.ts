/** What the API has to show for the plain model's campaigns. */
import type { Project, Reward } from '../../../contracts/api/schemas.ts'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { columns } from '../../../contracts/tables/campaign-columns.ts'
import type { CampaignReading } from '../events/model.ts'
import { majorText, percentText } from '../events/model.ts'
import { addedFields } from '../events/sample-events.ts'

/** The fields of a campaign that do not depend on a clock. */
export type TimelessProject = Omit<Project, 'days_remaining' | 'updated_at'>

const detailTexts = columns
  .filter(({ name, shown }) => shown === 'detail' && name !== 'rewards')
  .map(({ name }) => name)
const ofDetails: ReadonlySet<string> = new Set(
  columns.filter(({ shown }) => shown !== 'list').map(({ name }) => name),
)

/** The campaign as lists show it. */
export function expectedProject({ campaign, pledgedMinor, backerCount }: CampaignReading): TimelessProject {
  const digits = currencyDigits(campaign.currency) ?? 0
  const {
    campaign_id,
    creator,
    follower_count,
    goal_amount_minor,
    changed_at: _,
    version: __,
    ...texts
  } = campaign
  return {
    ...Object.fromEntries(
      Object.entries({ ...addedFields, ...texts }).filter(([name]) => !ofDetails.has(name)),
    ),
    id: campaign_id,
    goal_amount: Number(majorText(BigInt(goal_amount_minor), digits)),
    pledged_amount: Number(majorText(pledgedMinor, digits)),
    percent_funded: Number(percentText(pledgedMinor, BigInt(goal_amount_minor))),
    backer_count: backerCount,
    follower_count: Number(follower_count),
    status: campaign.status as Project['status'],
    launch_date: timestampOf(campaign.launch_date),
    end_date: timestampOf(campaign.end_date),
    created_at: new Date(campaign.created_at).toISOString(),
    creator: { name: creator.name, profile_url: creator.profile_url, avatar_url: creator.avatar_url },
  } as TimelessProject
}

/** The additional fields of the campaign's own page. */
export function expectedTexts({ campaign, rewards }: CampaignReading): {
  description: string
  risks: string
  rewards: Reward[]
} {
  const digits = currencyDigits(campaign.currency) ?? 0
  const given: Readonly<Record<string, unknown>> = { ...addedFields, ...campaign }
  return {
    ...(Object.fromEntries(detailTexts.map(name => [name, given[name]])) as {
      description: string
      risks: string
    }),
    rewards: campaign.rewards.map((reward, index) => {
      const reading = rewards[index]
      return {
        reward_id: reward.reward_id,
        title: reward.title,
        description: reward.description,
        amount: Number(majorText(BigInt(reward.amount_minor), digits)),
        quantity_available: numberOrNull(reward.quantity_available),
        quantity_claimed: reading?.claimed ?? 0,
        quantity_remaining: numberOrNull(reading?.remaining ?? null),
      }
    }),
  }
}

function timestampOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function numberOrNull(value: number | bigint | null): number | null {
  return value === null ? null : Number(value)
}
