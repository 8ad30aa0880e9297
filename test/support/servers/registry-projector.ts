/** The projector service with schemas from a registry, and producers that register their schemas there. */
import { type EventType, keyOf, type StateEvent } from '../../../contracts/events/event.ts'
import { type RunningProjector, startProjector } from '../projector/running-projector.ts'

export interface RegistryProjector extends RunningProjector {
  /** How often the registry was asked again. */
  schemaRetries(): Promise<number>
}

export function startRegistryProjector({
  settings,
  ...given
}: Parameters<typeof startProjector>[0]): RegistryProjector {
  const projector = startProjector({ ...given, settings: { PLEDGEVIEW_BATCH_MS_MAX: '20', ...settings } })
  return {
    ...projector,
    async schemaRetries() {
      const { values } = await projector.metrics.retries.get()
      return values.find(({ labels }) => labels.stage === 'schemas')?.value ?? 0
    },
  }
}

/** A state as a producer of another version writes it: without some fields of ours, with other fields and symbols. */
export interface ForeignState {
  type: EventType
  key: string
  data: object
}

/** One of our own states, for a producer of any version. */
export function stateOf(event: StateEvent): ForeignState {
  return { type: event.type, key: keyOf(event), data: event.data }
}
