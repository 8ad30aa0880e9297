/** `GET /`, the first page of the API: where to go from here. It needs no key. */
import { z } from 'zod'
import { apiTitle, basePath, openApiPath } from '../../../contracts/api/conventions.ts'
import {
  documentationUrlOf,
  type PublicAddresses,
  withoutSlash,
} from '../../../contracts/api/published-openapi.ts'
import { timestamp, timestampForm, webAddress } from '../../../contracts/api/schemas.ts'
import type { ApiVersion } from '../../../contracts/api/versions.ts'
import type { Operation } from './endpoint.ts'

const serviceSchema = z
  .object({
    title: z.string().meta({ description: 'The name of the API.' }),
    documentation_url: webAddress.nullable().meta({ description: 'The guide; null if there is no portal.' }),
    keys_url: webAddress.nullable().meta({
      description: 'Where to get a key and a secret; null if there is no portal: ask the operator.',
    }),
    openapi_url: z.string().meta({
      format: 'uri-reference',
      description: 'The OpenAPI document. It needs no key.',
    }),
    versions: z
      .array(
        z
          .object({
            name: z.string().meta({ description: 'As in the path.', example: 'v1' }),
            url: z.string().meta({
              format: 'uri-reference',
              description: 'The base address: the paths of resources follow it.',
            }),
            deprecated_at: timestamp.nullable().meta({
              description: `Since when new programs should not use it; null if it is current. ${timestampForm}`,
            }),
            sunset_at: timestamp.nullable().meta({
              description: `When it may stop answering; null if that is not decided. ${timestampForm}`,
            }),
          })
          .meta({ id: 'Version', description: 'A version of the API.' }),
      )
      .meta({ description: 'The versions of the API, the oldest first.' }),
  })
  .meta({ id: 'Service', description: 'Where to go from here.' })

type Service = z.infer<typeof serviceSchema>

export const serviceBodySchema = z
  .object({ data: serviceSchema })
  .meta({ id: 'ServiceBody', description: 'Where to go from here.' })

const serviceExample: Service = {
  title: apiTitle,
  documentation_url: 'https://developers.crowdfunding.example/docs',
  keys_url: 'https://developers.crowdfunding.example/access',
  openapi_url: `https://api.crowdfunding.example${openApiPath}`,
  versions: [
    {
      name: 'v1',
      url: `https://api.crowdfunding.example${basePath}`,
      deprecated_at: null,
      sunset_at: null,
    },
  ],
}

export const firstPage: Operation & {
  /** The page of an installation with these addresses. */
  bodyFor(addresses: PublicAddresses, versions: readonly ApiVersion[]): object
} = {
  path: '/',
  operationId: 'getService',
  tag: 'Service',
  summary: 'Show where to go',
  isPublic: true,
  parameters: {},
  answer: 'Where to go from here.',
  schema: serviceBodySchema,
  example: { data: serviceExample },
  failures: ['malformed_request'],
  bodyFor: (addresses, versions) => serviceBodySchema.parse({ data: serviceFor(addresses, versions) }),
}

function serviceFor(addresses: PublicAddresses, versions: readonly ApiVersion[]): Service {
  const { apiUrl, portalUrl } = addresses
  // What comes before every path. Empty: the links are relative to the address that was called.
  const root = apiUrl === undefined ? '' : rootOf(withoutSlash(apiUrl), versions)
  return {
    title: apiTitle,
    documentation_url: documentationUrlOf(addresses) ?? null,
    keys_url: portalUrl === undefined ? null : `${withoutSlash(portalUrl)}/access`,
    openapi_url: `${root}${openApiPath}`,
    versions: versions.map(({ name, basePath, deprecation }) => ({
      name,
      url: `${root}${basePath}`,
      deprecated_at: deprecation === null ? null : new Date(deprecation.since).toISOString(),
      sunset_at: deprecation?.sunset == null ? null : new Date(deprecation.sunset).toISOString(),
    })),
  }
}

/** A proxy may put a path of its own before that of the version. */
function rootOf(apiUrl: string, versions: readonly ApiVersion[]): string {
  const version = versions.find(({ basePath }) => apiUrl.endsWith(basePath))
  return version === undefined ? new URL(apiUrl).origin : apiUrl.slice(0, -version.basePath.length)
}
