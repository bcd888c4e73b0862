import { Button, Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { useIsAdministrator, whoAmI } from '../api/queries.ts';
import styles from './account-menu.module.css';
import { PersonIcon } from './icons.tsx';
import { useShortcutsSwitch } from './shortcuts.ts';

/** The signed-in user, and a plain form to sign out, so that the server shows the last page. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { data: me } = useQuery(whoAmI);
  const leave = useRef<HTMLFormElement>(null);
  const [hasShortcuts, setShortcuts] = useShortcutsSwitch();
  const name = me?.principal.name ?? 'Account';
  const isAdministrator = useIsAdministrator();
  return (
    <Menu position="bottom-end" width={220} transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button variant="subtle" color="gray" leftSection={<PersonIcon />} className={styles['me']}>
          <bdi className={styles['name']}>{name}</bdi>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <bdi>{name}</bdi>
          {isAdministrator && ' · administrator'}
        </Menu.Label>
        <Menu.Item closeMenuOnClick={false} onClick={() => setShortcuts(!hasShortcuts)}>
          Keyboard shortcuts: {hasShortcuts ? 'on' : 'off'}
          <span className={styles['hint']}>single letters, such as n and /</span>
        </Menu.Item>
        <Menu.Item onClick={onHelp}>Keyboard help</Menu.Item>
        <Menu.Item renderRoot={(props) => <Link to="/settings/command-line" {...props} />}>
          Command line
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item renderRoot={(props) => <Link to="/settings/passkeys" {...props} />}>Passkeys</Menu.Item>
        <Menu.Item renderRoot={(props) => <Link to="/settings/sessions" {...props} />}>Sessions</Menu.Item>
        <Menu.Item renderRoot={(props) => <Link to="/settings/password" {...props} />}>
          Change password
        </Menu.Item>
        <Menu.Item onClick={() => leave.current?.requestSubmit()}>Sign out</Menu.Item>
      </Menu.Dropdown>
      {/* Beside the menu, which is gone from the page as soon as something in it was chosen. */}
      <form ref={leave} method="post" action="/auth/logout" hidden />
    </Menu>
  );
}
