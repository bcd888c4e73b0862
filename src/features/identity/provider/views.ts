/** What a page of the provider looks like; surfaces/web/pages implements it. The provider knows no HTML. */
export type ProviderViews = {
  /** `status` as the protocol decided it; `description` is the protocol's own text, without secrets. */
  error(view: { error: string; description: string | undefined; requestId: string }): string;
  /** Our own fault; what it was is in the log. */
  failed(view: { requestId: string }): string;
  /** There is no such page. */
  nowhere(view: { requestId: string }): string;
  /** A step of connecting a device that took too long, or came from another browser. */
  deviceExpired(view: { requestId: string }): string;
  /** Enter the code a device shows. `action` receives `xsrf` and `user_code`. */
  deviceCode(view: { action: string; xsrf: string; userCode: string; problem: string | undefined }): string;
  /** Is it this device? `action` receives `xsrf`, `user_code` and `confirm=yes` or `abort=yes`. */
  deviceConfirm(view: {
    action: string;
    xsrf: string;
    userCode: string;
    shownCode: string;
    clientName: string;
    address: string | undefined;
  }): string;
  deviceDone(view: { clientName: string }): string;
  /** Sign out of the provider: `action` receives `xsrf` and `logout=yes`. */
  signOut(view: { action: string; xsrf: string }): string;
  signedOut(): string;
  /** The Content-Security-Policy that goes with these pages. */
  readonly contentSecurityPolicy: string;
};
