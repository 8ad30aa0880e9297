/** Statements in pieces that fail in every size: the error tells an operator which statement it was, and why. */
import { expect, test } from 'vitest'
import { createPieceRunner, type Pieces } from '../../../../services/projector/fold/fold-pieces.ts'
import { type Tables, TablesError } from '../../../../services/shared/tables/port.ts'

const horizonMs = 60_000

/** Runs pieces on tables where each statement takes this long, and then fails with this error, if there is one. */
async function failureOf(
  { takesMs = 0, error }: { takesMs?: number; error?: TablesError },
  pieces: Partial<Pieces> = {},
): Promise<TablesError> {
  let now = 0
  const tables: Pick<Tables, 'run'> = {
    async run() {
      now += takesMs
      if (error) throw error
    },
  }
  const runPieces = createPieceRunner({
    tables: tables as Tables,
    horizonMs,
    nextStep: (of, piece) => ({
      term: { epoch: 1n, holder: 'test' },
      foldId: 1n,
      pieces: of,
      piece,
      msMax: horizonMs / 2,
      memoryBytesMax: 1,
    }),
    beforePiece: async () => {},
    onDoubt() {},
    onUnseen() {},
    backoff: async () => {},
    monotonicMs: () => now,
    sleep: async () => {},
  })
  const whole: Pieces = {
    name: 'the look whether all is decided',
    pieces: 1,
    statementOf: () => ({ query: 'INSERT' }),
    partsOf: () => 1,
    afterFailure: async () => {},
    ...pieces,
  }
  return runPieces(whole).then(
    () => expect.fail('it did not fail'),
    failure => failure,
  )
}

test('a statement that ClickHouse refuses does not count as one that is slow', async () => {
  const error = new TablesError('UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE: an earlier insert is undecided', {
    retryable: true,
    type: 'UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE',
  })
  const failure = await failureOf({ error })
  expect(failure).toMatchObject({ retryable: true })
  expect(failure.message).toBe(
    'the look whether all is decided failed 6 times: UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE: an earlier insert is undecided',
  )
})

test('a statement that needs too much memory names this, and the sizes in which it was tried', async () => {
  const error = new TablesError('too much', { retryable: true, type: 'MEMORY_LIMIT_EXCEEDED' })
  const failure = await failureOf({ error }, { name: 'the fold of campaigns', partsOf: () => 4 })
  expect(failure.message).toBe(
    'the fold of campaigns failed 6 times, in smaller pieces, too: ClickHouse refused it (MEMORY_LIMIT_EXCEEDED)',
  )
})

test.each([
  { what: 'that ends after its time', takesMs: horizonMs, reason: 'LATE' },
  {
    what: 'that ClickHouse cancels for its time',
    error: new TablesError('over', { retryable: true, type: 'TIMEOUT_EXCEEDED' }),
    reason: 'TIMEOUT_EXCEEDED',
  },
])('a statement $what names the time that it had', async ({ reason, ...fault }) => {
  const failure = await failureOf(fault)
  expect(failure.message).toBe(
    `the look whether all is decided failed 6 times: it did not end within 30000 ms (${reason})`,
  )
})
