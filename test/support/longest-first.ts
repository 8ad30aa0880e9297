/** Runs the files that take minutes first, so that none of them is left over when all others are done. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// In this order; the rest follows as vitest has it, which on a clean checkout only knows the size of a file.
const long = [
  'test/faults/',
  'test/end-to-end/kickstarter',
  'test/end-to-end/rebuild-',
  'test/integration/event-log-kafka',
  'test/end-to-end/distributed-commands',
  'test/integration/rebuild/',
  'test/simulation/',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const found = long.findIndex(part => moduleId.includes(`/${part}`))
  return found < 0 ? long.length : found
}
