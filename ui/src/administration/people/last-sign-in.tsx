import { Moment } from '../../shell/moment.tsx';

/** The time of the last sign-in, in a list of people. */
export function LastSignIn({ at, now }: { at: string | null; now: number }) {
  return at === null ? <span className="quiet">Never</span> : <Moment at={at} now={now} />;
}
