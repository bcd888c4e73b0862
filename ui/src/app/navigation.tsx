import { Link } from '@tanstack/react-router';
import { BookIcon, KeyIcon, PlugIcon } from './icons.tsx';
import styles from './navigation.module.css';

/** Where one can go, by area. */
export function Navigation() {
  return (
    <nav className={styles['nav']} aria-label="Areas">
      <h2 className={styles['area']}>Settings</h2>
      <Link to="/settings/keys" className={styles['link']} activeOptions={{ includeSearch: false }}>
        <KeyIcon /> API keys
      </Link>
      <Link to="/settings/clients" className={styles['link']}>
        <PlugIcon /> Connected clients
      </Link>
      <a href="/api/v2/docs" className={styles['link']}>
        <BookIcon /> API reference
      </a>
    </nav>
  );
}
