/**
 * The schemas that several bodies of the API share, with every field named. Those of one resource stand with it
 * (services/query/endpoints).
 *
 * The schemas are the allowlist. Every body is parsed by one of them before it leaves the service. This drops every
 * field that is not named, and refuses values of the wrong type. The OpenAPI document is generated from the same schemas.
 */
import { z } from 'zod'
import { type CreatorFields, columns, type Flat, type ShownFields } from '../tables/campaign-columns.ts'
import { errorCodes } from './errors.ts'

// The formats are for generated clients. Without them many use 32 bits: in Go amounts lose their cents, in Java a large count breaks its page.
export const amount = z.number().nonnegative().meta({ format: 'double' })
// Not z.int(), which stops at 2^53-1: the platform may send more, and one such number must not break its page.
export const count = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .meta({ override: { type: 'integer', format: 'int64' } })

export const timestamp = z.iso.datetime({ precision: 3 }).meta({
  example: '2026-03-01T12:00:00.000Z',
  // Without the pattern: some generated clients match it against the date that they have parsed already, and fail.
  override: ({ jsonSchema }) => {
    delete jsonSchema.pattern
  },
})
export const timestampForm = 'ISO 8601 in UTC, with milliseconds and a trailing Z.'

// Web addresses are passed on unchanged: a check here could only hide a campaign.
export const webAddress = z.string().meta({ format: 'uri' })

const rewardSchema = z
  .object({
    reward_id: z.string().meta({ description: 'Unique within its campaign.' }),
    title: z.string().meta({ description: 'The title of the tier, as plain text.' }),
    description: z.string().meta({ description: 'What a backer receives, as text.' }),
    amount: amount.meta({ description: "The price of the tier, in major units of the campaign's currency." }),
    quantity_available: count.nullable().meta({ description: 'The total quantity; null if unlimited.' }),
    quantity_claimed: count.meta({ description: 'The number of valid pledges for this tier.' }),
    quantity_remaining: count
      .nullable()
      .meta({ description: 'The quantity that is left; null if unlimited.' }),
  })
  .meta({ id: 'Reward', description: 'A reward tier.' })

export type Reward = z.infer<typeof rewardSchema>

/** A campaign as shown in lists. */
export type Project = Flat<
  ShownFields<'list'> & { days_remaining: number; updated_at: string; creator: CreatorFields }
>

/** A campaign as shown on its own page. */
export type ProjectDetail = Flat<Project & Omit<ShownFields<'detail'>, 'rewards'> & { rewards: Reward[] }>

/** The schema of a field, by its type in the tables. */
function schemaOf({ type, values, format }: Column): z.ZodType {
  if (values) return z.enum(values)
  const inner = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type)?.[1] ?? type
  const schema = typeSchema(inner)
  const formed = format === 'uri' ? webAddress : schema
  return type.startsWith('Nullable') ? formed.nullable() : formed
}

function typeSchema(type: string): z.ZodType {
  if (type === 'String') return z.string()
  if (type === 'Bool') return z.boolean()
  if (type === 'Array(String)') return z.array(z.string())
  if (type.startsWith('UInt')) return count
  if (type.startsWith('Decimal')) return amount
  if (type.startsWith('DateTime64')) return timestamp
  if (type.startsWith('Array(Tuple(reward_id')) return z.array(rewardSchema)
  throw new Error(`no schema is known for ${type}`)
}

type Column = (typeof columns)[number]

/** The columns that the API shows in this place. `part`: the name within the creator. */
export const shownColumns = { list: shownIn('list'), detail: shownIn('detail') }

function shownIn(where: 'list' | 'detail'): { column: Column; field: string; part: string | undefined }[] {
  return columns.flatMap(column => {
    const [field = '', part] = (column.api ?? column.name).split('.')
    return column.shown === where ? { column, field, part } : []
  })
}

/** What the API shows of a campaign in this place, by its names. `valueIn`: of a column. */
export function shownAs<Value>(where: 'list' | 'detail', valueIn: (column: Column) => Value) {
  const fields: Record<string, Value> = {}
  const creator: Record<string, Value> = {}
  for (const { column, field, part } of shownColumns[where]) {
    if (part === undefined) fields[field] = valueIn(column)
    else creator[part] = valueIn(column)
  }
  return where === 'list' ? { ...fields, creator } : fields
}

function describedSchema(column: Column): z.ZodType {
  const { type, comment, description = `${comment}.`, example, isExampleShown } = column
  const form = type.includes('DateTime64') ? ` ${timestampForm}` : ''
  return schemaOf(column).meta({ description: description + form, ...(isExampleShown && { example }) })
}

const daysRemaining = count.meta({
  description:
    'Whole days until `end_date`, rounded up; 0 if it has passed or there is none. It was right when the response was ' +
    'computed, and decreases with time. That is not a change of the campaign: `updated_since` does not report it. A ' +
    'mirror must compute it itself from `end_date`.',
})
const updatedAt = timestamp.meta({
  description:
    'When something that readers can see of this campaign last changed: a list field, its texts or its rewards. Of two ' +
    'copies of one campaign, the one with the later value is the newer. Do not send it as `updated_since`: changes with ' +
    `an earlier value may still become visible. Send \`X-Data-As-Of\`. ${timestampForm}`,
})

const { creator, ...ownFields } = shownAs<z.ZodType>('list', describedSchema) as Record<string, z.ZodType> & {
  creator: Record<string, z.ZodType>
}
// What is computed stands beside what it comes from.
const projectFields = Object.fromEntries(
  Object.entries(ownFields).flatMap(([name, schema]) => {
    if (name === 'end_date')
      return [
        [name, schema],
        ['days_remaining', daysRemaining],
      ]
    return name === 'created_at'
      ? [
          [name, schema],
          ['updated_at', updatedAt],
        ]
      : [[name, schema]]
  }),
) as Record<string, z.ZodType>
projectFields.creator = z
  .object(creator)
  .meta({ id: 'Creator', description: "The public profile of the campaign's creator." })

export const projectSchema = z.object(projectFields).meta({
  id: 'Project',
  description: 'A public campaign as shown in lists.',
}) as unknown as z.ZodType<Project>

export const projectDetailSchema = z
  .object({ ...projectFields, ...(shownAs('detail', describedSchema) as Record<string, z.ZodType>) })
  .meta({
    id: 'ProjectDetail',
    description: 'A public campaign with its texts and reward tiers.',
  }) as unknown as z.ZodType<ProjectDetail>

export const errorBodySchema = z
  .object({
    error: z
      .object({
        code: z.enum(errorCodes).meta({ description: 'A stable code. Programs should use this field.' }),
        message: z.string().meta({ description: 'A text for people. Its wording may change.' }),
      })
      .meta({ description: 'Why the request failed.' }),
  })
  .meta({ id: 'ErrorBody', description: 'The body of every response with a status of 400 or above.' })
