/**
 * Every resource of the API. A new one is a file beside this one, and a line here. Its path may not be one that a parameter of another path
 * matches: beside `/projects/{slug}`, a path `/projects/count` would hide the campaign with this slug.
 */
import type { Endpoint, Operation } from './endpoint.ts'
import { latestExport } from './exports.ts'
import { firstPage } from './first-page.ts'
import { project } from './project.ts'
import { projects } from './projects.ts'
import { removals } from './removals.ts'
import { stats } from './stats.ts'

/** Those that need a key. */
export const endpoints: readonly Endpoint[] = [projects, project, removals, latestExport, stats]

/** All of them, as the document has them. */
export const operations: readonly Operation[] = [...endpoints, firstPage]
