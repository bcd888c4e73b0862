import { Alert, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { aheadFromNow, exactly } from '../../shell/time.ts';
import { useChange } from '../../shell/use-change.ts';
import type { Facts } from './facts.ts';
import { ReasonedButton } from '../../shell/reasoned-button.tsx';

export function Restore({ site, actions, now }: Facts) {
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.POST('/sites/{id}/restore', { params: { path: { id: site.id } } })),
    said: `${site.name} is restored.`,
    refresh: ['sites'],
  });
  const until = site.restorableUntil === null ? null : Date.parse(site.restorableUntil);
  return (
    <Alert color="yellow" title="This site is deleted" mb="md">
      <Text size="sm" mb="sm">
        It is not served.{' '}
        {until !== null &&
          `It can be restored until ${exactly(until)} (${aheadFromNow(until, now)}); then it is gone for good.`}
      </Text>
      {error !== undefined && <Problem error={error} />}
      <ReasonedButton
        variant="default"
        size="xs"
        reason={actions.reasons.restore}
        loading={isBusy}
        onClick={run}
      >
        Restore
      </ReasonedButton>
    </Alert>
  );
}
