/** The line of the fold: what ClickHouse refused is split, and every outcome that was not seen ends the leader's term. */
import { expect, test } from 'vitest'
import { createLine, type Pieces, runWhole, splitOrRefuse } from '../../../../services/projector/fold/line.ts'
import { TablesError } from '../../../../services/tables/port.ts'

const tooLong = () => refusal('TIMEOUT_EXCEEDED')

function refusal(type: string): TablesError {
  return new TablesError(type, { retryable: type !== 'DECIMAL_OVERFLOW', type })
}

/** A line whose statements are named `pieces/piece`. `fate` throws what ClickHouse throws. */
function lineThat(fate: (statement: string) => void) {
  const did: string[] = []
  const line = createLine({
    tables: {
      async run({ query }) {
        did.push(query)
        fate(query)
        return undefined
      },
    },
    nextStep: (pieces, piece) => ({
      term: { epoch: 1n, holder: 'test' },
      foldId: 1n,
      pieces,
      piece,
      msMax: 1,
      memoryBytesMax: 1,
    }),
    beforePiece: async () => void did.push('before'),
    onUnseen: () => did.push('the term ends'),
  })
  const runPieces = (pieces: number, more: Partial<Pieces> = {}) =>
    line.runPieces({
      name: 'the fold of campaigns',
      pieces,
      statementOf: step => ({ query: `${step.pieces}/${step.piece}` }),
      partsOf: splitOrRefuse(2),
      ...more,
    })
  return { did, line, runPieces }
}

test.each([
  ['a lost connection', new TablesError('lost', { retryable: true })],
  ['an error that does not say what has become of the rows', refusal('UNKNOWN_STATUS_OF_INSERT')],
  ['a missing right', refusal('ACCESS_DENIED')],
])('%s ends the term, and nothing runs after it', async (_, error) => {
  const { did, runPieces } = lineThat(() => {
    throw error
  })
  await expect(runPieces(3)).rejects.toBe(error)
  expect(did).toEqual(['before', '3/2', 'the term ends'])
})

test('a clock that leapt ahead is seen by the statement: it wrote nothing, and the term goes on', async () => {
  const { did, line } = lineThat(() => {
    throw refusal('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO')
  })
  await expect(line.run({ query: 'fold' })).rejects.toMatchObject({ retryable: true })
  expect(did).toEqual(['fold'])
})

test('what ClickHouse refused is split, and what has ended is not run again', async () => {
  const { did, runPieces } = lineThat(statement => {
    if (statement === '2/0' || statement === '4/1') throw tooLong()
  })
  expect(await runPieces(2)).toBe(4)
  expect(did.filter(what => what !== 'before')).toEqual(['2/1', '2/0', '4/1', '8/3', '8/2', '4/0'])
  expect(did.filter(what => what === 'before')).toHaveLength(6)
})

test('a piece that has no parts is left out, and the others go on', async () => {
  const { did, runPieces } = lineThat(statement => {
    if (statement === '3/1') throw tooLong()
  })
  expect(await runPieces(3, { partsOf: () => 0 })).toBe(2)
  expect(did).not.toContain('the term ends')
})

test('a piece that is refused in every size is a retryable failure that names the statement and the reason', async () => {
  const { runPieces } = lineThat(() => {
    throw refusal('MEMORY_LIMIT_EXCEEDED')
  })
  await expect(runPieces(1)).rejects.toMatchObject({
    retryable: true,
    message: 'the fold of campaigns was refused 6 times, in smaller pieces, too: MEMORY_LIMIT_EXCEEDED',
  })
})

test('a value with which ClickHouse cannot compute is thrown at once where nothing can be left out', async () => {
  const error = refusal('DECIMAL_OVERFLOW')
  const { did, line, runPieces } = lineThat(() => {
    throw error
  })
  await expect(runPieces(1)).rejects.toBe(error)
  await expect(runWhole(line, { query: 'keys' })).rejects.toBe(error)
  expect(did).toEqual(['before', '1/0', 'keys'])
})

test('something else may run between two statements, and before none and after none', async () => {
  const { did, runPieces } = lineThat(() => {})
  await runPieces(3, { between: async () => void did.push('between') })
  expect(did).toEqual(['before', '3/2', 'between', 'before', '3/1', 'between', 'before', '3/0'])
})
