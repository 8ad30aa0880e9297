/** Watches the kafkajs clients that the code under test makes, and refuses some of their requests in Kafka's place. */
import type { Admin } from 'kafkajs'
import { vi } from 'vitest'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'

export interface WatchedClient {
  /** The next request for the offsets of a topic is answered with this. */
  refuseNext(failure: Error): void
  /** How many requests for the offsets of topics are under way. */
  asking(): number
  /** How many were refused. */
  refused(): number
  /** Runs after each heartbeat of a group's member. */
  onHeartbeat(listener: () => void): void
  /** Clients that are made from now on are not watched. */
  restore(): void
}

/** Watches all clients that are made until `restore`. */
export function watchClients(): WatchedClient {
  const { Kafka } = loadKafkajs()
  let failure: Error | undefined
  let asking = 0
  let refused = 0
  let listener = () => {}

  const admin = Kafka.prototype.admin
  const admins = vi.spyOn(Kafka.prototype, 'admin').mockImplementation(function (this: typeof Kafka, ...of) {
    const made: Admin = Reflect.apply(admin, this, of)
    const fetchTopicOffsets: Admin['fetchTopicOffsets'] = async topic => {
      const refusal = failure
      failure = undefined
      if (refusal) {
        refused++
        throw refusal
      }
      asking++
      return made.fetchTopicOffsets(topic).finally(() => asking--)
    }
    return { ...made, fetchTopicOffsets }
  })
  const consumer = Kafka.prototype.consumer
  const consumers = vi.spyOn(Kafka.prototype, 'consumer').mockImplementation(function (
    this: typeof Kafka,
    ...of
  ) {
    const made: ReturnType<typeof consumer> = Reflect.apply(consumer, this, of)
    made.on(made.events.HEARTBEAT, () => listener())
    return made
  })

  return {
    refuseNext(next) {
      failure = next
    },
    asking: () => asking,
    refused: () => refused,
    onHeartbeat(next) {
      listener = next
    },
    restore() {
      admins.mockRestore()
      consumers.mockRestore()
    },
  }
}

/** kafkajs's error for an answer of a broker that does not lead the partition any more. Its types do not have it. */
export function movedLeader(): Error {
  return protocolError(
    'NOT_LEADER_FOR_PARTITION',
    6,
    'This server is not the leader for that topic-partition',
  )
}

function protocolError(type: string, code: number, message: string): Error {
  const { KafkaJSProtocolError } = loadKafkajs()
  return new KafkaJSProtocolError(Object.assign(new Error(message), { type, code, retriable: true }))
}
