import { type Caller, userOf } from '../../core/caller.ts';
import { type Change, type ChangeTopic, concerns } from '../../platform/database/change-feed.ts';

/**
 * Tracks responses that are sent piece by piece. A change that may end the right of a caller to read one makes the server
 * authorize that caller again immediately. Without it, a stream that sends nothing would stay open until its next piece.
 */
export type OpenStreams = {
  /** `check` is called at each such change. Call the returned function when the stream has ended. */
  enter(caller: Caller, check: () => void): () => void;
};

export function createOpenStreams(deps: {
  subscribe(listener: (change: Change) => void): void;
}): OpenStreams {
  type Entry = { readonly caller: Caller; readonly check: () => void };
  const open = new Set<Entry>();
  deps.subscribe((change) => {
    for (const { caller, check } of open) if (mayEndRights[change.topic]?.(change, caller) === true) check();
  });
  return {
    enter(caller, check) {
      const entry = { caller, check };
      open.add(entry);
      return () => void open.delete(entry);
    },
  };
}

/** Whether a change with this topic may end what the caller may read; changes with another topic may not. */
const mayEndRights: { readonly [topic in ChangeTopic]?: (change: Change, caller: Caller) => boolean } = {
  key: (change, caller) => 'key' in caller && concerns(change, caller.key.id),
  session: (change, caller) => caller.kind === 'session' && concerns(change, caller.sessionId),
  principal(change, caller) {
    const user = userOf(caller);
    return user !== null && concerns(change, user.subject);
  },
  // The switches of key types, and the repositories that a key reaches.
  policy: (_change, caller) => 'key' in caller,
  repository: (_change, caller) => 'key' in caller,
};
