import { api, unwrap } from '../../api/client.ts';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import shared from '../../shell/page.module.css';
import { useChange } from '../../shell/use-change.ts';
import type { Facts } from './facts.ts';
import { ReasonedButton } from '../../shell/reasoned-button.tsx';

/** When it expires, and how far one extension takes it. */
export function ExpiryCard({ site, actions, now }: Facts) {
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.POST('/sites/{id}/extend', { params: { path: { id: site.id } } })),
    said: `The expiry of ${site.name} is extended.`,
    refresh: ['sites'],
  });
  const { expiresAt } = site;
  if (expiresAt === null)
    return (
      <section className={shared['card']}>
        <h2>Expiry</h2>
        <p className={shared['hint']}>This site does not expire.</p>
      </section>
    );
  const { extendsTo, latestExpiry } = actions;
  return (
    <section className={shared['card']}>
      <h2>Expiry</h2>
      <p className={shared['hint']}>
        {Date.parse(expiresAt) <= now ? 'Expired' : 'Expires'} <Moment at={expiresAt} now={now} isAhead />, on{' '}
        {exactly(Date.parse(expiresAt))}. You get a notice a week and a day before.
      </p>
      {error !== undefined && <Problem error={error} />}
      <ReasonedButton variant="default" reason={actions.reasons.extend} loading={isBusy} onClick={run}>
        {extendsTo === null ? 'Extend' : `Extend to ${day.format(Date.parse(extendsTo))}`}
      </ReasonedButton>
      {latestExpiry !== null && (
        <p className={shared['reason']}>
          As of today, a site may last until {day.format(Date.parse(latestExpiry))} at most.
        </p>
      )}
    </section>
  );
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
