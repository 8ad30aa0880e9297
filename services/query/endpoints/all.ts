/**
 * Every resource of the API. A new one is a file beside this one, and a line here. Its path may not be one that a parameter of another path
 * matches: beside `/projects/{slug}`, a path `/projects/count` would hide the campaign with this slug.
 */
import { basePath, openApiPath } from '../../../contracts/api/conventions.ts'
import type { Endpoint, Operation } from './endpoint.ts'
import { downloads, latestExport } from './exports.ts'
import { firstPage } from './first-page.ts'
import { project } from './project.ts'
import { projects } from './projects.ts'
import { removals } from './removals.ts'
import { stats } from './stats.ts'

/** Those that need a key. */
export const endpoints: readonly Endpoint[] = [projects, project, removals, latestExport, stats]

/** All of them, as the document has them. */
export const operations: readonly Operation[] = [...endpoints, firstPage]

/** The paths of the API's first page. It needs no key. */
export const servicePaths = ['/', basePath, `${basePath}/`] as const

const resources = [
  ...servicePaths,
  openApiPath,
  ...[...operations, ...downloads].map(({ path }) => basePath + path),
]
  .map(path => path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+'))
  .join('|')
// An absolute target may have no path: that is the root.
const resourcePattern = new RegExp(`^(?:(?:(?i:https?)://[^/]*)?(?:${resources})|(?i:https?)://[^/]*)$`)

/** Whether this request target is a resource that the API can read. As in the router, the path is decoded and its case counts. */
export function isResource(target: string): boolean {
  const [path = ''] = target.split(/[?#]/, 1)
  try {
    return resourcePattern.test(decodeURI(path))
  } catch {
    return false
  }
}
