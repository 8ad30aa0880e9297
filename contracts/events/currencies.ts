/**
 * ISO 4217: how many digits of a currency's `_minor` amounts stand after the decimal point.
 *
 * Source: ISO 4217 list one, and the codes that it dropped recently, because a campaign keeps its currency. Metals,
 * drawing rights and test codes are left out: they have no smallest unit. `Intl` knows the codes too, but its digits
 * come from CLDR, which rounds some currencies.
 */

const byDigits: Readonly<Record<0 | 2 | 3 | 4, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF ' +
    'CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ ' +
    'GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD ' +
    'MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD ' +
    'RUB SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH ' +
    'USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG ZWL',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

const digitsByCode: ReadonlyMap<string, number> = new Map(
  Object.entries(byDigits).flatMap(([digits, codes]) =>
    codes.split(' ').map(code => [code, Number(digits)] as const),
  ),
)

/** Digits after the decimal point (0, 2, 3 or 4), or `undefined` for a code that ISO 4217 does not list. */
export function currencyDigits(code: string): number | undefined {
  return digitsByCode.get(code)
}

export const currencyCodes: readonly string[] = [...digitsByCode.keys()]
