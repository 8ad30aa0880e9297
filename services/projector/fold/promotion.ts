/**
 * A promotion holds the fold of the generation that it began from: it takes an epoch under a name by which the fold workers know it.
 *
 * They wait until another generation is current, or until the attempt is given up (generations/attempts.ts). The name sorts after all
 * others, so of two that take the same epoch at once the promotion has it. A statement that takes an epoch has that as its own
 * condition, so none passes a promotion, however late it comes.
 */
export const promotionPrefix = '~promotion/'

/** The name under which this attempt holds the fold. */
export function promotionHolder(attempt: number): string {
  return `${promotionPrefix}${attempt}`
}

/** The attempt that holds the fold under this name, if one does. */
export function attemptOf(holder: string): number | undefined {
  return holder.startsWith(promotionPrefix) ? Number(holder.slice(promotionPrefix.length)) : undefined
}
