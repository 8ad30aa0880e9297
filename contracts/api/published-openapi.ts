/**
 * The OpenAPI document as one installation publishes it: `openapi.json` with the addresses of its API and its portal. Pure.
 */
import { errorBody, errorCodes } from './errors.ts'

/** The public addresses of an installation. One that is not set is undefined. */
export interface PublicAddresses {
  /** As consumers call it, with the version's path, for example `https://api.example.com/api/v1`. */
  apiUrl: string | undefined
  /** The portal, for example `https://developers.example.com`. */
  portalUrl: string | undefined
}

/** The parts of the document that differ between installations. */
export interface PublishedDocument {
  openapi: string
  info: { title: string; version: string; contact?: { name: string; url?: string } }
  servers: { url: string; description?: string }[]
  externalDocs?: { url: string; description: string }
  paths: Record<string, unknown>
  components: {
    responses: Record<string, { content: { 'application/json': { example: unknown } } }>
    schemas: Record<string, unknown>
  }
}

/** The address of the guide on a portal, without a fragment. Undefined if the installation has no portal. */
export function documentationUrlOf({ portalUrl }: PublicAddresses): string | undefined {
  return portalUrl === undefined ? undefined : `${withoutSlash(portalUrl)}/docs`
}

/**
 * The document with the addresses of an installation. Without the address of the API, its server stays relative to where
 * the document is served. Without a portal, nothing refers to one.
 */
export function publishedOpenApi(document: PublishedDocument, addresses: PublicAddresses): PublishedDocument {
  const { info, servers, externalDocs, components, ...rest } = document
  const { apiUrl } = addresses
  const documentationUrl = documentationUrlOf(addresses)
  const { contact, ...otherInfo } = info
  return {
    ...rest,
    info: {
      ...otherInfo,
      ...(contact && {
        contact: { name: contact.name, ...(documentationUrl !== undefined && { url: documentationUrl }) },
      }),
    },
    servers: apiUrl === undefined ? servers : [{ ...servers[0], url: withoutSlash(apiUrl) }],
    ...(externalDocs &&
      documentationUrl !== undefined && {
        externalDocs: { ...externalDocs, url: documentationUrl },
      }),
    components: { ...components, responses: responsesWith(components.responses, documentationUrl) },
  }
}

/** An address without the slashes at its end, so that a path can follow. */
export function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '')
}

/** The examples of errors, with the text that this installation sends. */
function responsesWith(
  responses: PublishedDocument['components']['responses'],
  documentationUrl: string | undefined,
): PublishedDocument['components']['responses'] {
  const own = { ...responses }
  for (const code of errorCodes) {
    const response = own[code]
    // The example of `invalid_parameter` names a parameter.
    if (response === undefined || code === 'invalid_parameter') continue
    const json = { ...response.content['application/json'], example: errorBody(code, documentationUrl) }
    own[code] = { ...response, content: { ...response.content, 'application/json': json } }
  }
  return own
}
