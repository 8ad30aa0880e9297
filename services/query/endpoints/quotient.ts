/** Quotients as decimals: exact, and rounded half up. Pure. */

// Amounts have at most four decimals: no currency has a smaller unit.
const amountDigits = 4
const amountUnits = 10n ** BigInt(amountDigits)

/**
 * `dividend / divisor`, rounded half up to this many decimals; 0 if the divisor is 0. The dividend is not negative and
 * has at most four decimals. The divisor is a whole number. It computes with integers, because a quotient of two
 * binary fractions has noise in its last digits and may be rounded to the wrong side.
 */
export function roundedQuotient(dividend: number, divisor: number, digits: number): number {
  if (divisor === 0) return 0
  const divided = inAmountUnits(dividend) * 10n ** BigInt(digits)
  const by = BigInt(divisor) * amountUnits
  const rounded = (2n * divided + by) / (2n * by)
  // A decimal text becomes the nearest number, which JSON writes as the same text.
  return Number(`${rounded}e-${digits}`)
}

/** The amount in ten-thousandths. The shortest text of a number has the decimals that were meant. */
function inAmountUnits(amount: number): bigint {
  // A number of this size is whole.
  if (amount > Number.MAX_SAFE_INTEGER) return BigInt(amount) * amountUnits
  // Not toFixed(): it writes the binary fraction, so 568964654693.07 becomes 568964654693.0699.
  const [whole = '', decimals = ''] = String(amount).split('.')
  return BigInt(whole + decimals.padEnd(amountDigits, '0'))
}
