/** `GET /exports/latest`: the latest whole copy, and its files beside it (http/download-routes.ts sends them). */
import { z } from 'zod'
import {
  type ExportFile,
  exportFiles,
  exportNames,
  latestManifest,
  type Manifest,
  manifestSchema,
} from '../../exports/latest.ts'
import { type Endpoint, NotFoundError, type Operation } from './endpoint.ts'

const example: Manifest = {
  as_of: '2026-03-19T03:00:00.123Z',
  created_at: '2026-03-19T03:00:01.456Z',
  campaigns: 391,
  api_version: 'v1',
  program_version: '1.4.0',
  files: [
    {
      name: 'campaigns.parquet',
      bytes: 482_113,
      sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
    },
  ],
}

export const latestExport: Endpoint = {
  path: '/exports/latest',
  operationId: 'getLatestExport',
  tag: 'Exports',
  summary: 'Show the latest whole copy',
  // None. (One that has no query is kept ahead of requests, which this one does not need.)
  parameters: { query: z.object({}) },
  answer: 'What the latest whole copy contains.',
  schema: z
    .object({ data: manifestSchema })
    .meta({ id: 'ExportBody', description: 'The latest whole copy of the public campaigns.' }),
  example: { data: example },
  // An operator may offer none.
  failures: ['not_found'],
  cacheMs: ({ PLEDGEVIEW_CACHE_MS: ms }) => ms,

  read: () => ({
    key: 'exports latest',
    parameters: null,
    async load({ options: { PLEDGEVIEW_EXPORT_DIR: directory } }) {
      const manifest = directory === undefined ? undefined : await latestManifest(directory)
      if (manifest === undefined) throw new NotFoundError('there is no whole copy')
      return { body: { data: manifest } }
    },
  }),
}

const texts: Readonly<Record<ExportFile, Pick<Operation, 'operationId' | 'summary' | 'answer'>>> = {
  'campaigns.ndjson.gz': {
    operationId: 'getLatestExportLines',
    summary: 'Download the latest whole copy as NDJSON',
    answer: 'Gzip of one line for each campaign: a JSON object with the fields of `ProjectDetail`.',
  },
  'campaigns.parquet': {
    operationId: 'getLatestExportParquet',
    summary: 'Download the latest whole copy as Parquet',
    answer: 'A Parquet file with one row for each campaign, and a column for each field of `ProjectDetail`.',
  },
}

/** Files that are sent as they are. */
export const downloads = exportNames.map(file => ({
  path: `${latestExport.path}/${file}`,
  file,
  type: exportFiles[file],
  ...texts[file],
}))
