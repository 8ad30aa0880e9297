/**
 * Leaves out the records of aborted transactions, in place of kafkajs. kafkajs enters one aborted transaction per
 * message. If compaction has removed the first records of two, the records of the second were read. It also took any
 * record with the key of a marker for the end of a transaction.
 */

export interface FetchedRecords<Message> {
  messages: readonly Message[]
  /** Those that overlap with the messages. Decimal. */
  abortedTransactions?: readonly { producerId: string; firstOffset: string }[] | null
}

export interface TransactionalMessage {
  offset: string
  key: Buffer | null
  isControlRecord?: boolean
  /** A message of an old format has none. */
  batchContext?: { producerId: string; inTransaction: boolean }
}

/** The messages that are not part of an aborted transaction. Control records stay: kafkajs removes them later. */
export function withoutAborted<Message extends TransactionalMessage>({
  messages,
  abortedTransactions,
}: FetchedRecords<Message>): readonly Message[] {
  if (!abortedTransactions || abortedTransactions.length === 0) return messages
  const ahead = abortedTransactions.toSorted((a, b) => Number(a.firstOffset) - Number(b.firstOffset))
  const aborted = new Set<string>()
  return messages.filter(({ offset, key, isControlRecord, batchContext }) => {
    while (ahead[0] && Number(offset) >= Number(ahead[0].firstOffset)) {
      aborted.add(ahead[0].producerId)
      ahead.shift()
    }
    if (!batchContext) return true
    const { producerId, inTransaction } = batchContext
    if (!isControlRecord) return !(inTransaction && aborted.has(producerId))
    if (key?.equals(abortMarker)) aborted.delete(producerId)
    return true
  })
}

const abortMarker = Buffer.from([0, 0, 0, 0])
