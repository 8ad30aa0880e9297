/** What a whole copy says of itself: `manifest.json` beside its files. */
import { z } from 'zod'
import { basePath } from '../../contracts/api/conventions.ts'
import { timestamp, timestampForm } from '../../contracts/api/schemas.ts'

/** The files of a copy, and their types. */
export const exportFiles = {
  'campaigns.ndjson.gz': 'application/gzip',
  'campaigns.parquet': 'application/vnd.apache.parquet',
} as const

export type ExportFile = keyof typeof exportFiles

export const exportNames = Object.keys(exportFiles) as [ExportFile, ...ExportFile[]]

export const manifestSchema = z
  .object({
    as_of: timestamp.meta({
      description: `The copy contains every change up to this moment. Send it as \`updated_since\` and \`since\`. ${timestampForm}`,
    }),
    created_at: timestamp.meta({
      description: `When the copy was made. \`days_remaining\` is of this moment. ${timestampForm}`,
    }),
    campaigns: z.int().nonnegative().meta({ description: 'The number of campaigns, in each of the files.' }),
    api_version: z.string().meta({ description: 'The version of the API whose fields the campaigns have.' }),
    program_version: z.string().meta({ description: 'The version of the program that made the copy.' }),
    files: z
      .array(
        z
          .object({
            name: z.enum(exportNames).meta({ description: 'The last part of its path.' }),
            bytes: z.int().nonnegative().meta({ description: 'Its length.' }),
            sha256: z
              .string()
              .regex(/^[0-9a-f]{64}$/)
              .meta({ description: 'The SHA-256 of its bytes, in hex. Its `ETag` is the same.' }),
          })
          .meta({ id: 'ExportFile', description: 'A file of a whole copy.' }),
      )
      .meta({ description: 'The files. Each has all campaigns.' }),
  })
  .meta({ id: 'ExportManifest', description: 'A whole copy of the public campaigns.' })

export type Manifest = z.infer<typeof manifestSchema>

export const apiVersion = basePath.split('/').at(-1) ?? ''
