CREATE TABLE `agent` (
	`owner` text NOT NULL,
	`id` text NOT NULL,
	`name` text NOT NULL,
	`type` text NOT NULL,
	`capabilities` text NOT NULL,
	`status` text NOT NULL,
	`is_public` integer NOT NULL,
	`registered_us` integer NOT NULL,
	`last_seen_us` integer NOT NULL,
	`deleted_us` integer,
	`seq` integer NOT NULL,
	`changed_us` integer NOT NULL,
	PRIMARY KEY(`owner`, `id`)
);
--> statement-breakpoint
CREATE INDEX `agent_newest` ON `agent` (`owner`,`registered_us`,`id`) WHERE deleted_us IS NULL;--> statement-breakpoint
CREATE INDEX `agent_by_status` ON `agent` (`owner`,`status`,`registered_us`,`id`) WHERE deleted_us IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `agent_public_id` ON `agent` (`id`) WHERE is_public = 1 AND deleted_us IS NULL;--> statement-breakpoint
CREATE INDEX `agent_public_newest` ON `agent` (`registered_us`,`id`) WHERE is_public = 1 AND deleted_us IS NULL;--> statement-breakpoint
CREATE INDEX `agent_seen` ON `agent` (`last_seen_us`) WHERE status = 'active' AND deleted_us IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `agent_feed` ON `agent` (`owner`,`seq`);--> statement-breakpoint
CREATE TABLE `client` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`owner` text NOT NULL,
	`agent_id` text NOT NULL,
	`scope` text NOT NULL,
	`secret_hash` text NOT NULL,
	`created_us` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `client_name_unique` ON `client` (`name`);--> statement-breakpoint
CREATE TABLE `counter` (
	`owner` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`owner`, `kind`, `status`)
);
--> statement-breakpoint
CREATE TABLE `execution` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`workflow_id` text NOT NULL,
	`route_owner` text NOT NULL,
	`route` text NOT NULL,
	`status` text NOT NULL,
	`due_us` integer NOT NULL,
	`pause_us` integer NOT NULL,
	`wake_us` integer,
	`attempt` integer NOT NULL,
	`is_new_attempt` integer NOT NULL,
	`failures` integer NOT NULL,
	`losses` integer NOT NULL,
	`max_attempts` integer NOT NULL,
	`at_most_once` integer NOT NULL,
	`timeout_us` integer NOT NULL,
	`start_timeout_us` integer NOT NULL,
	`start_deadline_us` integer NOT NULL,
	`deadline_us` integer,
	`agent_owner` text NOT NULL,
	`agent_id` text NOT NULL,
	`poll_id` text NOT NULL,
	`lease_token` text NOT NULL,
	`lease_us` integer NOT NULL,
	`lease_until_us` integer,
	`cancel_us` integer,
	`failure` text,
	`error_code` text NOT NULL,
	`created_us` integer NOT NULL,
	`started_us` integer,
	`finished_us` integer,
	`seq` integer NOT NULL,
	`changed_us` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `execution_ready` ON `execution` (`route_owner`,`route`,`due_us`,`id`) WHERE status = 'queued';--> statement-breakpoint
CREATE INDEX `execution_wake` ON `execution` (`wake_us`) WHERE wake_us IS NOT NULL;--> statement-breakpoint
CREATE INDEX `execution_held` ON `execution` (`agent_owner`,`agent_id`) WHERE status = 'running';--> statement-breakpoint
CREATE INDEX `execution_of_workflow` ON `execution` (`workflow_id`,`created_us`,`id`);--> statement-breakpoint
CREATE INDEX `execution_active` ON `execution` (`workflow_id`) WHERE wake_us IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `execution_feed` ON `execution` (`owner`,`seq`);--> statement-breakpoint
CREATE INDEX `execution_finished` ON `execution` (`finished_us`) WHERE finished_us IS NOT NULL;--> statement-breakpoint
CREATE TABLE `execution_content` (
	`execution_id` text NOT NULL,
	`field` text NOT NULL,
	`sealed` blob NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `execution_content_field` ON `execution_content` (`execution_id`,`field`);--> statement-breakpoint
CREATE TABLE `feed_head` (
	`owner` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `meta` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `request` (
	`owner` text NOT NULL,
	`rpc` text NOT NULL,
	`target` text NOT NULL,
	`request_id` text NOT NULL,
	`fingerprint` text NOT NULL,
	`object_id` text NOT NULL,
	PRIMARY KEY(`owner`, `rpc`, `target`, `request_id`)
);
--> statement-breakpoint
CREATE INDEX `request_object` ON `request` (`object_id`);--> statement-breakpoint
CREATE TABLE `sync_entity` (
	`owner` text NOT NULL,
	`type` text NOT NULL,
	`entity_id` text NOT NULL,
	`version` text NOT NULL,
	`deleted` integer NOT NULL,
	`revision` integer NOT NULL,
	`agent_id` text NOT NULL,
	`created_us` integer NOT NULL,
	`updated_us` integer NOT NULL,
	`seq` integer NOT NULL,
	`encrypted_data` text NOT NULL,
	PRIMARY KEY(`owner`, `type`, `entity_id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sync_entity_feed` ON `sync_entity` (`owner`,`deleted`,`seq`);--> statement-breakpoint
CREATE INDEX `sync_entity_type_feed` ON `sync_entity` (`owner`,`type`,`deleted`,`seq`);--> statement-breakpoint
CREATE INDEX `sync_entity_id_feed` ON `sync_entity` (`owner`,`entity_id`,`deleted`,`seq`);--> statement-breakpoint
CREATE TABLE `sync_mutation` (
	`owner` text NOT NULL,
	`mutation_id` text NOT NULL,
	`type` text NOT NULL,
	`entity_id` text NOT NULL,
	`version` text NOT NULL,
	`deleted` integer NOT NULL,
	`status` text NOT NULL,
	`revision` integer NOT NULL,
	`seq` integer NOT NULL,
	`agent_id` text NOT NULL,
	`created_us` integer NOT NULL,
	`updated_us` integer NOT NULL,
	`accepted_us` integer NOT NULL,
	PRIMARY KEY(`owner`, `mutation_id`)
);
--> statement-breakpoint
CREATE INDEX `sync_mutation_accepted` ON `sync_mutation` (`accepted_us`);--> statement-breakpoint
CREATE TABLE `task_grant` (
	`execution_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`agent_owner` text NOT NULL,
	`agent_id` text NOT NULL,
	`key_released` integer NOT NULL,
	`granted_us` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `task_grant_execution` ON `task_grant` (`execution_id`,`granted_us`);--> statement-breakpoint
CREATE TABLE `task_report` (
	`execution_id` text NOT NULL,
	`lease_token` text NOT NULL,
	`verb` text NOT NULL,
	`agent_owner` text NOT NULL,
	`agent_id` text NOT NULL,
	PRIMARY KEY(`execution_id`, `lease_token`)
);
--> statement-breakpoint
CREATE TABLE `workflow` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`status` text NOT NULL,
	`agent_owner` text NOT NULL,
	`agent_id` text NOT NULL,
	`allow_public` integer NOT NULL,
	`required_capabilities` text NOT NULL,
	`runs_started` integer NOT NULL,
	`runs_waiting` integer NOT NULL,
	`last_outcome` text,
	`created_us` integer NOT NULL,
	`updated_us` integer NOT NULL,
	`deleted_us` integer,
	`seq` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `workflow_newest` ON `workflow` (`owner`,`created_us`,`id`) WHERE deleted_us IS NULL;--> statement-breakpoint
CREATE INDEX `workflow_by_status` ON `workflow` (`owner`,`status`,`created_us`,`id`) WHERE deleted_us IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `workflow_feed` ON `workflow` (`owner`,`seq`);--> statement-breakpoint
CREATE INDEX `workflow_deleted` ON `workflow` (`deleted_us`) WHERE deleted_us IS NOT NULL;--> statement-breakpoint
CREATE TABLE `workflow_payload` (
	`workflow_id` text PRIMARY KEY NOT NULL,
	`encrypted_data` text NOT NULL,
	`sealed_key` blob
);
