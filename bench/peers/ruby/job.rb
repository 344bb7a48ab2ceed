# frozen_string_literal: true

# Sidekiq as its package has it: a job leaves Redis when a worker takes it, so a crash loses what was running.
require 'sidekiq'
require_relative 'tally'

redis = { url: "redis://127.0.0.1:#{ENV.fetch('BENCH_PORT')}/0" }
Sidekiq.configure_client { |config| config.redis = redis }
Sidekiq.configure_server do |config|
  config.redis = redis
  TALLY = Tally.new
end
Sidekiq.logger.level = Logger::WARN

class Job
  include Sidekiq::Worker
  sidekiq_options queue: 'bench', retry: false

  def perform(body)
    TALLY.count(body)
  end
end
