import { ActionIcon, Alert } from '@mantine/core';
import { Link, Outlet, useLocation, useNavigate, useRouterState } from '@tanstack/react-router';
import { type RefObject, useEffect, useRef, useState } from 'react';
import { useSessionHasEnded } from '../api/session.ts';
import { AccountMenu } from './account-menu.tsx';
import { Announcements } from './announce.tsx';
import { MarkIcon, MenuIcon } from './icons.tsx';
import { KeyboardHelp } from './keyboard-help.tsx';
import { Navigation, NoticesLink, Parts } from './navigation.tsx';
import { NoAccess, useLacksAccess } from './no-access.tsx';
import { PaletteButton } from './palette/palette-button.tsx';
import { SignInAgain } from './problem.tsx';
import { SchemeMenu } from './scheme-menu.tsx';
import styles from './shell.module.css';
import { useShortcut } from './shortcuts.ts';

/** The frame of every page: navigation, account menu, and a warning when the session has ended. */
export function Shell() {
  const navigate = useNavigate();
  const main = useRef<HTMLElement>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const { pathname } = useLocation();
  const lacksAccess = useLacksAccess();
  useFocusOnNewPage(main);
  useShortcut('n', () => {
    // Administration pages have their own buttons to create items.
    if (pathname.startsWith('/admin')) return;
    const made = (['/sites', '/environments'] as const).find((list) => pathname.startsWith(list));
    void navigate({ to: made === undefined ? '/settings/keys/new' : `${made}/new` });
  });
  useShortcut('shift+?', () => setHelpOpen(true));
  return (
    <div className={styles['frame']}>
      <a className={styles['skip']} href="#content">
        Skip to the content
      </a>
      <header className={styles['header']}>
        {!lacksAccess && (
          <ActionIcon
            className={styles['menu']}
            variant="subtle"
            color="gray"
            size="lg"
            aria-label="Menu"
            aria-expanded={isMenuOpen}
            aria-controls="areas"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <MenuIcon size={22} />
          </ActionIcon>
        )}
        <Link to="/" className={styles['brand']} aria-label="Postern, to the start">
          <MarkIcon size={26} />
          <span>Postern</span>
        </Link>
        {!lacksAccess && <PaletteButton />}
        {!lacksAccess && <NoticesLink />}
        <SchemeMenu />
        <AccountMenu onHelp={() => setHelpOpen(true)} />
      </header>
      <div className={styles['body']}>
        {!lacksAccess && <Navigation isOpen={isMenuOpen} onGo={() => setMenuOpen(false)} />}
        <main id="content" ref={main} tabIndex={-1} className={styles['main']}>
          <SessionEnded />
          {!lacksAccess && <Parts />}
          {lacksAccess ? <NoAccess /> : <Outlet />}
        </main>
      </div>
      <Announcements />
      <KeyboardHelp isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </div>
  );
}

/**
 * After a change of page the focus is on its heading, or on the page while it has none, so that keyboard and screen reader
 * users begin there. A field or a dialog of the new page that took the focus keeps it.
 */
function useFocusOnNewPage(main: RefObject<HTMLElement | null>): void {
  const pathname = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname });
  const shown = useRef(pathname);
  useEffect(() => {
    const before = shown.current;
    shown.current = pathname;
    if (before === undefined || before === pathname) return;
    const page = main.current;
    const focused = document.activeElement;
    if (page === null || (focused !== page && page.contains(focused))) return;
    if (document.querySelector('[role="dialog"]') !== null) return;
    const heading = page.querySelector('h1');
    if (heading !== null) heading.tabIndex = -1;
    (heading ?? page).focus({ preventScroll: true });
  }, [main, pathname]);
}

function SessionEnded() {
  if (!useSessionHasEnded()) return null;
  return (
    <Alert color="yellow" title="You are signed out" mb="lg" role="alert">
      Your session has ended. Nothing you typed here is lost: <SignInAgain />, come back and try again.
    </Alert>
  );
}
