/**
 * Bounds the connections of one address (IPv6: of one /64), so that one host cannot take all that the portal may have. A
 * trusted proxy carries many people, so it has no bound of its own.
 */
import type { Server } from 'node:http'
import { addressBucket } from '../../shared/address-bucket.ts'

export interface AddressConnectionsOptions {
  perAddressMax: number
  isTrustedProxy: (address: string | undefined) => boolean
}

/** Closes connections beyond the bound on arrival. */
export function boundAddresses(
  server: Server,
  { perAddressMax, isTrustedProxy }: AddressConnectionsOptions,
): void {
  const open = new Map<string, number>()
  server.on('connection', socket => {
    if (isTrustedProxy(socket.remoteAddress)) return
    const bucket = addressBucket(socket.remoteAddress)
    const count = open.get(bucket) ?? 0
    if (count >= perAddressMax) {
      socket.destroy()
      return
    }
    open.set(bucket, count + 1)
    socket.once('close', () => {
      const left = (open.get(bucket) ?? 1) - 1
      if (left > 0) open.set(bucket, left)
      else open.delete(bucket)
    })
  })
}
